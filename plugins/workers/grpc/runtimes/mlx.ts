/** MLX over gRPC: one choice, token ids as stops, no constraints. */
import * as wire from '../../../../proto/gen/mlx-engine.ts'
import { commonReaders, engineSampling, outputOf } from './common-messages.ts'
import type { Runtime } from './runtime.ts'

export const mlx: Runtime = {
  name: 'mlx',
  paths: wire.MlxEngine,
  stopStrings: 'ids-only',
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
        samplingParams: engineSampling(request),
        stream: request.stream,
      },
      request.tokenIds.length * 3 + request.text.length + 512,
    ),
  encodeAbort: (id) => wire.encodeAbortRequest({ requestIds: [id] }),
  readResponse(message) {
    const response = wire.decodeGenerateResponse(message)
    const output = outputOf(response)
    output.matchedStop = response.complete?.matchedStopTokenId ?? null
    return output
  },
  ...commonReaders(wire),
}
