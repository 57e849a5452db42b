/** TokenSpeed's scheduler over gRPC. */
import * as wire from '../../../../proto/gen/tokenspeed-scheduler.ts'
import { commonReaders, outputOf, readLoads, schedulerSampling } from './common-messages.ts'
import type { EngineRequest, Runtime } from './runtime.ts'

export const tokenspeed: Runtime = {
  name: 'tokenspeed',
  paths: wire.TokenSpeedScheduler,
  stopStrings: 'supported',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'bootstrap', roomBits: 63 },
  countsByMessage: false,
  reportsNamedLogprobs: false,
  hasDefaults: true,
  unsupportedParameter: () => null,
  encodeGenerate: (request) =>
    wire.encodeGenerateRequest(
      {
        requestId: request.id,
        tokenized: { originalText: request.text, inputIds: request.tokenIds },
        samplingParams: toSampling(request),
        returnLogprob: request.topLogprobs !== null,
        logprobStartLen: request.promptLogprobsFrom,
        topLogprobsNum: request.topLogprobs ?? 0,
        stream: request.stream,
        dataParallelRank: request.rank ?? undefined,
        kvBootstrapInfo: request.pair?.meeting,
      },
      request.tokenIds.length * 3 + request.text.length + 512,
    ),
  encodeAbort: (requestId) => wire.encodeAbortRequest({ requestId, reason: 'client disconnected' }),
  readResponse: (message) => outputOf(wire.decodeGenerateResponse(message)),
  ...commonReaders(wire),
  readLoads: (message) => readLoads(wire.decodeGetLoadsResponse(message)),
}

function toSampling(request: EngineRequest) {
  const { stop = [], seed } = request.sampling
  const samplingSeed = seed === undefined ? undefined : BigInt(Math.max(0, Math.trunc(seed)))
  return Object.assign(schedulerSampling(request), { stop, samplingSeed })
}
