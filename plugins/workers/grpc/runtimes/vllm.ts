/** vLLM's engine over gRPC. */
import * as wire from '../../../../proto/gen/vllm-engine.ts'
import {
  chunkOutput,
  completeResponse,
  constraintText,
  emptyOutput,
  healthProblem,
  MAX_INT32,
  readLoads,
  seedWithin,
  topKFromZero,
  topLogprobsOf,
} from './common-messages.ts'
import type { EngineRequest, Runtime } from './runtime.ts'

export const vllm: Runtime = {
  name: 'vllm',
  paths: wire.VllmEngine,
  stopStrings: 'supported',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'transfer' },
  countsByMessage: true,
  reportsNamedLogprobs: false,
  hasDefaults: true,
  constraintWaits: (_thinks, labels) => labels.constrained_decoding_start === 'after_reasoning',
  unsupportedParameter: () => null,
  encodeGenerate: (request) =>
    wire.encodeGenerateRequest(
      {
        requestId: request.id,
        tokenized: { originalText: request.text, inputIds: request.tokenIds },
        samplingParams: toSampling(request),
        stream: request.pair?.isPrefill === true ? false : request.stream,
        kvTransferParamsJson: request.pair?.transferJson,
        kvTransferParams: request.pair?.transferFrom,
        dataParallelRank: request.rank ?? undefined,
      },
      request.tokenIds.length * 3 + request.text.length + 512,
    ),
  encodeAbort: (id) => wire.encodeAbortRequest({ requestIds: [id] }),
  readResponse(message) {
    const { chunk, complete } = wire.decodeGenerateResponse(message)
    if (chunk !== undefined) return chunkOutput(chunk)
    if (complete === undefined) return emptyOutput()
    const reply = completeResponse(complete)
    reply.transferJson = complete.kvTransferParamsJson ?? null
    return reply
  },
  readHealth: (message) => healthProblem(wire.decodeHealthCheckResponse(message)),
  readModelInfo: wire.decodeGetModelInfoResponse,
  readServerInfo: wire.decodeGetServerInfoResponse,
  readLoads: (message) => readLoads(wire.decodeGetLoadsResponse(message)),
  embed: {
    encode: (requestId, inputIds, originalText) =>
      wire.encodeEmbedRequest(
        { requestId, tokenized: { originalText, inputIds } },
        inputIds.length * 3 + 256,
      ),
    read(message) {
      const { embedding, promptTokens } = wire.decodeEmbedResponse(message)
      return { values: embedding, promptTokens }
    },
  },
}

function toSampling(request: EngineRequest) {
  const { sampling, constraint } = request
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
    logprobs: topLogprobsOf(request, 1),
    seed: seedWithin(sampling.seed, MAX_INT32),
    includeStopStrInOutput: sampling.includesStop ?? false,
    logitBias: sampling.logitBias,
    jsonSchema: constraintText(constraint, 'json_schema'),
    regex: constraintText(constraint, 'regex'),
    grammar: constraintText(constraint, 'grammar'),
    structuralTag: constraintText(constraint, 'structural_tag'),
  }
}
