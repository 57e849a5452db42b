/** SGLang's scheduler over gRPC. */

import type { PromptLogprob } from '#kernel'
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
  type InputLogProbs,
  SglangScheduler as paths,
} from '../../../../proto/gen/sglang-scheduler.ts'
import {
  biasByText,
  chunkOutput,
  completeResponse,
  constraintText,
  emptyOutput,
  enginePaths,
  healthProblem,
  toReport,
} from './common-messages.ts'
import type { EngineRequest, Runtime } from './runtime.ts'

export const sglang: Runtime = {
  name: 'sglang',
  paths: enginePaths(paths),
  stopStrings: 'ids-only',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'bootstrap', roomBits: 31 },
  countsByMessage: false,
  reportsNamedLogprobs: true,
  hasDefaults: true,
  constraintWaits: (thinks) => thinks,
  unsupportedParameter: () => null,
  encodeGenerate: (request) =>
    encodeGenerateRequest(
      {
        requestId: request.id,
        tokenized: { originalText: request.text, inputIds: request.tokenIds },
        samplingParams: toSampling(request),
        returnLogprob: request.topLogprobs !== null,
        logprobStartLen: request.promptLogprobsFrom,
        topLogprobsNum: request.topLogprobs ?? 0,
        tokenIdsLogprob: request.logprobsOf,
        stream: request.stream,
        requireReasoning: request.thinks,
        dataParallelRank: request.rank ?? undefined,
        ...(request.pair?.meeting !== undefined && {
          disaggregatedParams: {
            bootstrapHost: request.pair.meeting.host,
            bootstrapPort: request.pair.meeting.port,
            bootstrapRoom: Number(request.pair.meeting.room),
          },
        }),
      },
      (request.tokenIds.length + request.logprobsOf.length) * 3 + request.text.length + 512,
    ),
  encodeAbort: (requestId) => encodeAbortRequest({ requestId, reason: 'client disconnected' }),
  readResponse(message) {
    const { chunk, complete } = decodeGenerateResponse(message)
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
  readHealth: (message) => healthProblem(decodeHealthCheckResponse(message)),
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

function promptLogprobsIn({ inputLogprobs }: { readonly inputLogprobs: InputLogProbs | undefined }) {
  if (inputLogprobs === undefined) return null
  const { tokenIds, tokenLogprobs } = inputLogprobs
  return tokenIds.map((id, at): PromptLogprob => [tokenLogprobs[at]?.value ?? null, id])
}

/** Sends every field, since absent ones read as 0. */
function toSampling({ sampling, constraint, ...request }: EngineRequest) {
  return {
    temperature: sampling.temperature ?? 1,
    topP: sampling.topP ?? 1,
    topK: sampling.topK ?? -1,
    minP: sampling.minP ?? 0,
    frequencyPenalty: sampling.frequencyPenalty ?? 0,
    presencePenalty: sampling.presencePenalty ?? 0,
    repetitionPenalty: sampling.repetitionPenalty ?? 1,
    maxNewTokens: sampling.maxTokens,
    minNewTokens: sampling.minTokens ?? 0,
    stopTokenIds: request.stopTokenIds,
    skipSpecialTokens: request.skipsSpecialTokens,
    spacesBetweenSpecialTokens: true,
    regex: constraintText(constraint, 'regex'),
    jsonSchema: constraintText(constraint, 'json_schema'),
    ebnfGrammar: constraintText(constraint, 'ebnf_grammar'),
    structuralTag: constraintText(constraint, 'structural_tag'),
    n: request.choices,
    ignoreEos: sampling.ignoreEos ?? false,
    noStopTrim: sampling.includesStop ?? false,
    logitBias: biasByText(sampling.logitBias),
  }
}
