/** SGLang's scheduler over gRPC. */

import type { PromptLogprob } from '#kernel'
import * as wire from '../../../../proto/gen/sglang-scheduler.ts'
import { commonEmbed, commonReaders, outputOf, readLoads, schedulerSampling } from './common-messages.ts'
import type { Runtime } from './runtime.ts'

export const sglang: Runtime = {
  name: 'sglang',
  paths: wire.SglangScheduler,
  stopStrings: 'ids-only',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'bootstrap', roomBits: 31 },
  countsByMessage: false,
  reportsNamedLogprobs: true,
  lacks: ['seed'],
  hasDefaults: true,
  constraintWaits: (thinks) => thinks,
  unsupportedParameter: () => null,
  encodeGenerate: (request) =>
    wire.encodeGenerateRequest(
      {
        requestId: request.id,
        tokenized: { originalText: request.text, inputIds: request.tokenIds },
        samplingParams: schedulerSampling(request),
        returnLogprob: request.topLogprobs !== null,
        logprobStartLen: request.promptLogprobsFrom,
        topLogprobsNum: request.topLogprobs ?? 0,
        tokenIdsLogprob: request.logprobsOf,
        stream: request.stream,
        requireReasoning: request.thinks,
        dataParallelRank: request.rank ?? undefined,
        disaggregatedParams: request.pair?.meeting && {
          ...request.pair.meeting,
          bootstrapRoom: Number(request.pair.meeting.bootstrapRoom),
        },
      },
      (request.tokenIds.length + request.logprobsOf.length) * 3 + request.text.length + 512,
    ),
  encodeAbort: (requestId) => wire.encodeAbortRequest({ requestId, reason: 'client disconnected' }),
  readResponse(message) {
    const response = wire.decodeGenerateResponse(message)
    const output = outputOf(response)
    const given = response.chunk ?? response.complete
    output.named = given?.outputLogprobs?.tokenIdsLogprobs ?? []
    output.promptLogprobs = toPromptLogprobs(given?.inputLogprobs)
    return output
  },
  ...commonReaders(wire),
  readLoads: (message) => readLoads(wire.decodeGetLoadsResponse(message)),
  embed: commonEmbed(wire),
}

function toPromptLogprobs(given: wire.InputLogProbs | undefined) {
  if (given === undefined) return null
  const { tokenIds, tokenLogprobs } = given
  return tokenIds.map((id, at): PromptLogprob => [tokenLogprobs[at]?.value ?? null, id])
}
