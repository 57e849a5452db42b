/** MLX's engine over gRPC: one choice, token ids as stops, no constraints. */
import {
  decodeGenerateResponse,
  decodeGetModelInfoResponse,
  decodeGetServerInfoResponse,
  decodeHealthCheckResponse,
  encodeAbortRequest,
  encodeGenerateRequest,
  MlxEngine as paths,
} from '../../../../proto/gen/mlx-engine.ts'
import { choiceOf, emptyReply, pieceOf } from './replies.ts'
import type { Ask, Runtime } from './runtime.ts'
import { MAX_INT32, seedWithin, topKFromZero } from './sampling.ts'

const MAX_TOP = { chat: 20, text: 5 }

export const mlx: Runtime = {
  name: 'mlx',
  paths: {
    generate: paths.Generate,
    abort: paths.Abort,
    health: paths.HealthCheck,
    modelInfo: paths.GetModelInfo,
    serverInfo: paths.GetServerInfo,
  },
  stopStrings: 'refuses',
  maxChoices: 1,
  pairing: null,
  countsByMessage: false,
  tellsNamedLogprobs: false,
  hasDefaults: false,
  lacks: ({ sampling }) => (sampling.minTokens ? 'min_tokens' : null),
  encodeGenerate: (ask) =>
    encodeGenerateRequest(
      {
        requestId: ask.id,
        tokenized: { originalText: ask.text, inputIds: ask.tokenIds },
        samplingParams: toSampling(ask),
        stream: ask.stream,
      },
      ask.tokenIds.length * 3 + ask.text.length + 512,
    ),
  encodeAbort: (id) => encodeAbortRequest({ requestIds: [id] }),
  readReply(message) {
    const { chunk, complete } = decodeGenerateResponse(message)
    if (chunk !== undefined) return pieceOf(chunk)
    if (complete === undefined) return emptyReply()
    const reply = choiceOf(complete)
    reply.matchedStop = complete.matchedStopTokenId ?? null
    return reply
  },
  readHealth(message) {
    const { healthy, message: words } = decodeHealthCheckResponse(message)
    return healthy ? null : words || 'not healthy'
  },
  readModelInfo: (message) => ({ ...decodeGetModelInfoResponse(message) }),
  readServerInfo: (message) => ({ ...decodeGetServerInfoResponse(message) }),
}

function toSampling({ sampling, ...ask }: Ask) {
  return {
    temperature: sampling.temperature,
    topP: sampling.topP ?? 1,
    topK: topKFromZero(sampling.topK),
    minP: sampling.minP ?? 0,
    repetitionPenalty: sampling.repetitionPenalty ?? 1,
    frequencyPenalty: sampling.frequencyPenalty ?? 0,
    presencePenalty: sampling.presencePenalty ?? 0,
    logitBias: sampling.logitBias,
    maxTokens: sampling.maxTokens,
    stopTokenIds: ask.stopTokenIds,
    ignoreEos: sampling.ignoreEos ?? false,
    logprobs: ask.topLogprobs === null ? undefined : Math.min(ask.topLogprobs || 1, MAX_TOP[ask.kind]),
    seed: seedWithin(sampling.seed, MAX_INT32),
  }
}
