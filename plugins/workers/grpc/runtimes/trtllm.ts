/** TensorRT-LLM over gRPC. */
import {
  decodeGenerateResponse,
  decodeGetModelInfoResponse,
  decodeGetServerInfoResponse,
  decodeHealthCheckResponse,
  encodeAbortRequest,
  encodeGenerateRequest,
  GuidedDecodingParamsGuideType,
  TrtllmService as paths,
  type TokenLogprob,
} from '../../../../proto/gen/trtllm-service.ts'
import { emptyReply } from './replies.ts'
import type { Ask, EngineReply, Runtime } from './runtime.ts'

/** The field must be set: what the client's silence becomes. */
const MAX_TOKENS = { chat: 2_048, text: 16 }
const MAX_TOP = { chat: 20, text: 5 }

export const trtllm: Runtime = {
  name: 'trtllm',
  paths: {
    generate: paths.Generate,
    abort: paths.Abort,
    health: paths.HealthCheck,
    modelInfo: paths.GetModelInfo,
    serverInfo: paths.GetServerInfo,
    kvEvents: paths.SubscribeKvEvents,
  },
  stopStrings: 'takes',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: null,
  countsByMessage: false,
  tellsNamedLogprobs: false,
  hasDefaults: false,
  lacks: ({ sampling }) =>
    sampling.logitBias !== undefined && sampling.logitBias.size > 0 ? 'logit_bias' : null,
  encodeGenerate: (ask) =>
    encodeGenerateRequest(
      {
        requestId: ask.id,
        tokenized: { originalText: ask.text, inputTokenIds: ask.tokenIds },
        samplingConfig: toSampling(ask),
        outputConfig: {
          logprobs: ask.topLogprobs === null ? undefined : Math.min(ask.topLogprobs, MAX_TOP[ask.kind]),
          excludeInputFromOutput: true,
        },
        maxTokens: ask.sampling.maxTokens ?? MAX_TOKENS[ask.kind],
        streaming: ask.stream,
        guidedDecoding: toGuide(ask),
        stop: ask.sampling.stop ?? [],
        stopTokenIds: ask.stopTokenIds,
        ignoreEos: ask.sampling.ignoreEos ?? false,
        includeStopTokenInOutput: ask.sampling.includesStop ?? false,
      },
      ask.tokenIds.length * 3 + ask.text.length + 512,
    ),
  encodeAbort: (requestId) => encodeAbortRequest({ requestId }),
  readReply(message) {
    const { chunk, complete } = decodeGenerateResponse(message)
    if (chunk !== undefined)
      return {
        ...emptyReply(),
        index: chunk.sequenceIndex,
        tokenIds: chunk.tokenIds,
        promptTokens: chunk.promptTokens,
        completionTokens: chunk.completionTokens,
        cachedTokens: chunk.cachedTokens,
        ...toLogprobs(chunk.logprobs),
      }
    if (complete === undefined) return emptyReply()
    return {
      ...emptyReply(),
      isComplete: true,
      index: complete.sequenceIndex,
      tokenIds: complete.outputTokenIds,
      promptTokens: complete.promptTokens,
      completionTokens: complete.completionTokens,
      cachedTokens: complete.cachedTokens,
      finishReason: complete.finishReason,
      matchedStop: complete.matchedStopStr ?? complete.matchedTokenId ?? null,
      ...toLogprobs(complete.logprobs),
    }
  },
  readHealth(message) {
    const { status } = decodeHealthCheckResponse(message)
    return status.trim().toUpperCase() === 'OK' ? null : status || 'not healthy'
  },
  readModelInfo: (message) => ({ ...decodeGetModelInfoResponse(message) }),
  readServerInfo: (message) => ({ ...decodeGetServerInfoResponse(message) }),
}

function toSampling({ sampling, choices }: Ask) {
  return {
    beamWidth: 1,
    numReturnSequences: choices,
    topK: sampling.topK === undefined ? undefined : Math.max(0, sampling.topK),
    topP: sampling.topP ?? 1,
    seed: sampling.seed === undefined ? undefined : BigInt(Math.max(0, Math.trunc(sampling.seed))),
    temperature: sampling.temperature ?? 1,
    minTokens: sampling.minTokens,
    repetitionPenalty: sampling.repetitionPenalty ?? 1,
    presencePenalty: sampling.presencePenalty,
    frequencyPenalty: sampling.frequencyPenalty,
    minP: sampling.minP,
  }
}

function toGuide({ constraint }: Ask) {
  if (constraint === null) return undefined
  const types: ReadonlyMap<string, number> = new Map(Object.entries(GuidedDecodingParamsGuideType))
  return { guideType: types.get(constraint.name) ?? 0, guide: constraint.text }
}

function toLogprobs(tokens: readonly TokenLogprob[]): Pick<EngineReply, 'logprobs' | 'top'> {
  if (tokens.length === 0) return { logprobs: null, top: [] }
  return {
    logprobs: tokens.map(({ logprob }) => logprob),
    top: tokens.map(({ topLogprobs }) => ({
      values: topLogprobs.map(({ logprob }) => logprob),
      tokenIds: topLogprobs.map(({ tokenId }) => tokenId),
    })),
  }
}
