/** vLLM's engine over gRPC. */
import * as wire from '../../../../proto/gen/vllm-engine.ts'
import { commonEmbed, commonReaders, engineSampling, outputOf, readLoads } from './common-messages.ts'
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
    const response = wire.decodeGenerateResponse(message)
    const output = outputOf(response)
    output.transferJson = response.complete?.kvTransferParamsJson ?? null
    return output
  },
  ...commonReaders(wire),
  readLoads: (message) => readLoads(wire.decodeGetLoadsResponse(message)),
  embed: commonEmbed(wire),
}

/** Settings by which a prefill worker generates a single token. */
const PREFILL_SAMPLING = { maxTokens: 1, minTokens: 0, stop: [], stopTokenIds: [], ignoreEos: true, n: 1 }

function toSampling(request: EngineRequest) {
  const params = engineSampling(request)
  return request.pair?.isPrefill === true ? Object.assign(params, PREFILL_SAMPLING) : params
}
