/** TensorRT-LLM over gRPC. */
import * as wire from '../../../../proto/gen/trtllm-service.ts'
import { emptyOutput, topLogprobsOf } from './common-messages.ts'
import type { EngineOutput, EngineRequest, Runtime } from './runtime.ts'

/** Default of the required field. */
const MAX_TOKENS = { chat: 2_048, text: 16 }

export const trtllm: Runtime = {
  name: 'trtllm',
  paths: wire.TrtllmService,
  stopStrings: 'supported',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: null,
  countsByMessage: false,
  reportsNamedLogprobs: false,
  hasDefaults: false,
  unsupportedParameter: ({ sampling }) =>
    sampling.logitBias !== undefined && sampling.logitBias.size > 0 ? 'logit_bias' : null,
  encodeGenerate: (request) =>
    wire.encodeGenerateRequest(
      {
        requestId: request.id,
        tokenized: { originalText: request.text, inputTokenIds: request.tokenIds },
        samplingConfig: toSampling(request),
        outputConfig: {
          logprobs: topLogprobsOf(request, 0),
          excludeInputFromOutput: true,
        },
        maxTokens: request.sampling.maxTokens ?? MAX_TOKENS[request.kind],
        streaming: request.stream,
        guidedDecoding: toGuide(request),
        stop: request.sampling.stop ?? [],
        stopTokenIds: request.stopTokenIds,
        ignoreEos: request.sampling.ignoreEos ?? false,
        includeStopTokenInOutput: request.sampling.includesStop ?? false,
      },
      request.tokenIds.length * 3 + request.text.length + 512,
    ),
  encodeAbort: (requestId) => wire.encodeAbortRequest({ requestId }),
  readResponse(message) {
    const { chunk, complete } = wire.decodeGenerateResponse(message)
    if (chunk !== undefined)
      return {
        ...emptyOutput(),
        index: chunk.sequenceIndex,
        tokenIds: chunk.tokenIds,
        promptTokens: chunk.promptTokens,
        completionTokens: chunk.completionTokens,
        cachedTokens: chunk.cachedTokens,
        ...toLogprobs(chunk.logprobs),
      }
    if (complete === undefined) return emptyOutput()
    return {
      ...emptyOutput(),
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
    const { status } = wire.decodeHealthCheckResponse(message)
    return status.trim().toUpperCase() === 'OK' ? null : status || 'not healthy'
  },
  readModelInfo: wire.decodeGetModelInfoResponse,
  readServerInfo: wire.decodeGetServerInfoResponse,
}

function toSampling({ sampling, choices }: EngineRequest) {
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

function toGuide({ constraint }: EngineRequest) {
  if (constraint === null) return undefined
  const types: ReadonlyMap<string, number> = new Map(Object.entries(wire.GuidedDecodingParamsGuideType))
  return { guideType: types.get(constraint.name) ?? 0, guide: constraint.text }
}

function toLogprobs(tokens: readonly wire.TokenLogprob[]): Pick<EngineOutput, 'logprobs' | 'top'> {
  if (tokens.length === 0) return { logprobs: null, top: [] }
  return {
    logprobs: tokens.map(({ logprob }) => logprob),
    top: tokens.map(({ topLogprobs }) => ({
      values: topLogprobs.map(({ logprob }) => logprob),
      tokenIds: topLogprobs.map(({ tokenId }) => tokenId),
    })),
  }
}
