/** vLLM's engine over gRPC. */
import {
  decodeEmbedResponse,
  decodeGenerateResponse,
  decodeGetLoadsResponse,
  decodeGetModelInfoResponse,
  decodeGetServerInfoResponse,
  decodeHealthCheckResponse,
  encodeAbortRequest,
  encodeEmbedRequest,
  encodeGenerateRequest,
  VllmEngine as paths,
} from '../../../../proto/gen/vllm-engine.ts'
import { toReport } from './loads.ts'
import { choiceOf, emptyReply, pieceOf } from './replies.ts'
import type { Ask, Runtime } from './runtime.ts'
import { MAX_INT32, seedWithin, topKFromZero, under } from './sampling.ts'

/** Alternatives a token at most, by kind of request. */
const MAX_TOP = { chat: 20, text: 5 }

export const vllm: Runtime = {
  name: 'vllm',
  paths: {
    generate: paths.Generate,
    abort: paths.Abort,
    health: paths.HealthCheck,
    modelInfo: paths.GetModelInfo,
    serverInfo: paths.GetServerInfo,
    loads: paths.GetLoads,
    embed: paths.Embed,
    flushCache: paths.FlushCache,
    startProfile: paths.StartProfile,
    stopProfile: paths.StopProfile,
    kvEvents: paths.SubscribeKvEvents,
  },
  stopStrings: 'takes',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'hands-over' },
  countsByMessage: true,
  tellsNamedLogprobs: false,
  hasDefaults: true,
  constraintWaits: (_thinks, labels) => labels.constrained_decoding_start === 'after_reasoning',
  lacks: () => null,
  encodeGenerate: (ask) =>
    encodeGenerateRequest(
      {
        requestId: ask.id,
        tokenized: { originalText: ask.text, inputIds: ask.tokenIds },
        samplingParams: toSampling(ask),
        stream: ask.pair?.isPrefill === true ? false : ask.stream,
        kvTransferParamsJson: ask.pair?.transferJson,
        ...(ask.pair?.transferFrom !== undefined && {
          kvTransferParams: {
            remoteHost: ask.pair.transferFrom.host,
            remotePort: ask.pair.transferFrom.port,
          },
        }),
        dataParallelRank: ask.rank ?? undefined,
      },
      ask.tokenIds.length * 3 + ask.text.length + 512,
    ),
  encodeAbort: (id) => encodeAbortRequest({ requestIds: [id] }),
  readReply(message) {
    const { chunk, complete } = decodeGenerateResponse(message)
    if (chunk !== undefined) return pieceOf(chunk)
    if (complete === undefined) return emptyReply()
    const reply = choiceOf(complete)
    reply.transferJson = complete.kvTransferParamsJson ?? null
    return reply
  },
  readHealth(message) {
    const { healthy, message: words } = decodeHealthCheckResponse(message)
    return healthy ? null : words || 'not healthy'
  },
  readModelInfo: (message) => ({ ...decodeGetModelInfoResponse(message) }),
  readServerInfo: (message) => ({ ...decodeGetServerInfoResponse(message) }),
  readLoads: (message) => toReport(decodeGetLoadsResponse(message)),
  encodeEmbed: (requestId, inputIds, originalText) =>
    encodeEmbedRequest({ requestId, tokenized: { originalText, inputIds } }, inputIds.length * 3 + 256),
  readEmbed(message) {
    const { embedding, promptTokens } = decodeEmbedResponse(message)
    return { values: embedding, promptTokens }
  },
}

function toSampling({ sampling, constraint, ...ask }: Ask) {
  const isPrefill = ask.pair?.isPrefill === true
  return {
    temperature: sampling.temperature,
    topP: sampling.topP ?? 1,
    topK: topKFromZero(sampling.topK),
    minP: sampling.minP ?? 0,
    frequencyPenalty: sampling.frequencyPenalty ?? 0,
    presencePenalty: sampling.presencePenalty ?? 0,
    repetitionPenalty: sampling.repetitionPenalty ?? 1,
    maxTokens: isPrefill ? 1 : sampling.maxTokens,
    minTokens: isPrefill ? 0 : (sampling.minTokens ?? 0),
    stop: isPrefill ? [] : (sampling.stop ?? []),
    stopTokenIds: isPrefill ? [] : ask.stopTokenIds,
    skipSpecialTokens: ask.skipsSpecialTokens,
    spacesBetweenSpecialTokens: true,
    ignoreEos: isPrefill || (sampling.ignoreEos ?? false),
    n: isPrefill ? 1 : ask.choices,
    logprobs: ask.topLogprobs === null ? undefined : Math.min(ask.topLogprobs || 1, MAX_TOP[ask.kind]),
    seed: seedWithin(sampling.seed, MAX_INT32),
    includeStopStrInOutput: sampling.includesStop ?? false,
    logitBias: sampling.logitBias,
    jsonSchema: under(constraint, 'json_schema'),
    regex: under(constraint, 'regex'),
    grammar: under(constraint, 'grammar'),
    structuralTag: under(constraint, 'structural_tag'),
  }
}
