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
import {
  chunkOutput,
  completeResponse,
  constraintText,
  emptyOutput,
  enginePaths,
  healthProblem,
  MAX_INT32,
  MAX_TOP_LOGPROBS,
  seedWithin,
  topKFromZero,
  toReport,
} from './common-messages.ts'
import type { EngineRequest, Runtime } from './runtime.ts'

export const vllm: Runtime = {
  name: 'vllm',
  paths: enginePaths(paths),
  stopStrings: 'supported',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'transfer' },
  countsByMessage: true,
  reportsNamedLogprobs: false,
  hasDefaults: true,
  constraintWaits: (_thinks, labels) => labels.constrained_decoding_start === 'after_reasoning',
  unsupportedParameter: () => null,
  encodeGenerate: (request) =>
    encodeGenerateRequest(
      {
        requestId: request.id,
        tokenized: { originalText: request.text, inputIds: request.tokenIds },
        samplingParams: toSampling(request),
        stream: request.pair?.isPrefill === true ? false : request.stream,
        kvTransferParamsJson: request.pair?.transferJson,
        ...(request.pair?.transferFrom !== undefined && {
          kvTransferParams: {
            remoteHost: request.pair.transferFrom.host,
            remotePort: request.pair.transferFrom.port,
          },
        }),
        dataParallelRank: request.rank ?? undefined,
      },
      request.tokenIds.length * 3 + request.text.length + 512,
    ),
  encodeAbort: (id) => encodeAbortRequest({ requestIds: [id] }),
  readResponse(message) {
    const { chunk, complete } = decodeGenerateResponse(message)
    if (chunk !== undefined) return chunkOutput(chunk)
    if (complete === undefined) return emptyOutput()
    const reply = completeResponse(complete)
    reply.transferJson = complete.kvTransferParamsJson ?? null
    return reply
  },
  readHealth: (message) => healthProblem(decodeHealthCheckResponse(message)),
  readModelInfo: decodeGetModelInfoResponse,
  readServerInfo: decodeGetServerInfoResponse,
  readLoads: (message) => toReport(decodeGetLoadsResponse(message)),
  encodeEmbed: (requestId, inputIds, originalText) =>
    encodeEmbedRequest({ requestId, tokenized: { originalText, inputIds } }, inputIds.length * 3 + 256),
  readEmbed(message) {
    const { embedding, promptTokens } = decodeEmbedResponse(message)
    return { values: embedding, promptTokens }
  },
}

function toSampling({ sampling, constraint, ...request }: EngineRequest) {
  const isPrefill = request.pair?.isPrefill === true
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
    stopTokenIds: isPrefill ? [] : request.stopTokenIds,
    skipSpecialTokens: request.skipsSpecialTokens,
    spacesBetweenSpecialTokens: true,
    ignoreEos: isPrefill || (sampling.ignoreEos ?? false),
    n: isPrefill ? 1 : request.choices,
    logprobs:
      request.topLogprobs === null
        ? undefined
        : Math.min(request.topLogprobs || 1, MAX_TOP_LOGPROBS[request.kind]),
    seed: seedWithin(sampling.seed, MAX_INT32),
    includeStopStrInOutput: sampling.includesStop ?? false,
    logitBias: sampling.logitBias,
    jsonSchema: constraintText(constraint, 'json_schema'),
    regex: constraintText(constraint, 'regex'),
    grammar: constraintText(constraint, 'grammar'),
    structuralTag: constraintText(constraint, 'structural_tag'),
  }
}
