/** MLX over gRPC: one choice, token ids as stops, no constraints. */
import * as wire from '../../../../proto/gen/mlx-engine.ts'
import {
  chunkOutput,
  completeResponse,
  emptyOutput,
  healthProblem,
  MAX_INT32,
  seedWithin,
  topKFromZero,
  topLogprobsOf,
} from './common-messages.ts'
import type { EngineRequest, Runtime } from './runtime.ts'

export const mlx: Runtime = {
  name: 'mlx',
  paths: wire.MlxEngine,
  stopStrings: 'unsupported',
  maxChoices: 1,
  pairing: null,
  countsByMessage: false,
  reportsNamedLogprobs: false,
  hasDefaults: false,
  unsupportedParameter: ({ sampling }) => (sampling.minTokens ? 'min_tokens' : null),
  encodeGenerate: (request) =>
    wire.encodeGenerateRequest(
      {
        requestId: request.id,
        tokenized: { originalText: request.text, inputIds: request.tokenIds },
        samplingParams: toSampling(request),
        stream: request.stream,
      },
      request.tokenIds.length * 3 + request.text.length + 512,
    ),
  encodeAbort: (id) => wire.encodeAbortRequest({ requestIds: [id] }),
  readResponse(message) {
    const { chunk, complete } = wire.decodeGenerateResponse(message)
    if (chunk !== undefined) return chunkOutput(chunk)
    if (complete === undefined) return emptyOutput()
    const reply = completeResponse(complete)
    reply.matchedStop = complete.matchedStopTokenId ?? null
    return reply
  },
  readHealth: (message) => healthProblem(wire.decodeHealthCheckResponse(message)),
  readModelInfo: wire.decodeGetModelInfoResponse,
  readServerInfo: wire.decodeGetServerInfoResponse,
}

function toSampling(request: EngineRequest) {
  const { sampling } = request
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
    stopTokenIds: request.stopTokenIds,
    ignoreEos: sampling.ignoreEos ?? false,
    logprobs: topLogprobsOf(request, 1),
    seed: seedWithin(sampling.seed, MAX_INT32),
  }
}
