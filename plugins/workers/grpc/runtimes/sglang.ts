/** SGLang's scheduler over gRPC. */

import type { PromptLogprob } from '#kernel'
import * as wire from '../../../../proto/gen/sglang-scheduler.ts'
import {
  chunkOutput,
  completeResponse,
  emptyOutput,
  healthProblem,
  readLoads,
  schedulerSampling,
} from './common-messages.ts'
import type { Runtime } from './runtime.ts'

export const sglang: Runtime = {
  name: 'sglang',
  paths: wire.SglangScheduler,
  stopStrings: 'ids-only',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'bootstrap', roomBits: 31 },
  countsByMessage: false,
  reportsNamedLogprobs: true,
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
    const { chunk, complete } = wire.decodeGenerateResponse(message)
    if (chunk !== undefined) {
      const piece = chunkOutput(chunk)
      piece.named = chunk.outputLogprobs?.tokenIdsLogprobs ?? []
      piece.promptLogprobs = promptLogprobsIn(chunk)
      return piece
    }
    if (complete === undefined) return emptyOutput()
    const reply = completeResponse(complete)
    reply.named = complete.outputLogprobs?.tokenIdsLogprobs ?? []
    reply.promptLogprobs = promptLogprobsIn(complete)
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

function promptLogprobsIn({ inputLogprobs }: { readonly inputLogprobs: wire.InputLogProbs | undefined }) {
  if (inputLogprobs === undefined) return null
  const { tokenIds, tokenLogprobs } = inputLogprobs
  return tokenIds.map((id, at): PromptLogprob => [tokenLogprobs[at]?.value ?? null, id])
}
