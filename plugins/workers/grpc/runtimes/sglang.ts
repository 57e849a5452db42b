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
import { toReport } from './loads.ts'
import { choiceOf, emptyReply, pieceOf } from './replies.ts'
import type { Ask, Runtime } from './runtime.ts'
import { biasByText, under } from './sampling.ts'

export const sglang: Runtime = {
  name: 'sglang',
  paths: {
    generate: paths.Generate,
    abort: paths.Abort,
    health: paths.HealthCheck,
    modelInfo: paths.GetModelInfo,
    serverInfo: paths.GetServerInfo,
    loads: paths.GetLoads,
    embed: paths.Embed,
    flushCache: paths.FlushCache,
    startProfile: paths.StartProfile,
    stopProfile: paths.StopProfile,
    kvEvents: paths.SubscribeKvEvents,
  },
  stopStrings: 'ids-only',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'meets', roomBits: 31 },
  countsByMessage: false,
  tellsNamedLogprobs: true,
  hasDefaults: true,
  constraintWaits: (thinks) => thinks,
  lacks: () => null,
  encodeGenerate: (ask) =>
    encodeGenerateRequest(
      {
        requestId: ask.id,
        tokenized: { originalText: ask.text, inputIds: ask.tokenIds },
        samplingParams: toSampling(ask),
        returnLogprob: ask.topLogprobs !== null,
        logprobStartLen: ask.promptLogprobsFrom,
        topLogprobsNum: ask.topLogprobs ?? 0,
        tokenIdsLogprob: ask.logprobsOf,
        stream: ask.stream,
        requireReasoning: ask.thinks,
        dataParallelRank: ask.rank ?? undefined,
        ...(ask.pair?.meeting !== undefined && {
          disaggregatedParams: {
            bootstrapHost: ask.pair.meeting.host,
            bootstrapPort: ask.pair.meeting.port,
            bootstrapRoom: Number(ask.pair.meeting.room),
          },
        }),
      },
      (ask.tokenIds.length + ask.logprobsOf.length) * 3 + ask.text.length + 512,
    ),
  encodeAbort: (requestId) => encodeAbortRequest({ requestId, reason: 'the client left' }),
  readReply(message) {
    const { chunk, complete } = decodeGenerateResponse(message)
    if (chunk !== undefined) {
      const piece = pieceOf(chunk)
      piece.named = chunk.outputLogprobs?.tokenIdsLogprobs ?? []
      piece.promptLogprobs = promptLogprobsIn(chunk)
      return piece
    }
    if (complete === undefined) return emptyReply()
    const reply = choiceOf(complete)
    reply.named = complete.outputLogprobs?.tokenIdsLogprobs ?? []
    reply.promptLogprobs = promptLogprobsIn(complete)
    return reply
  },
  readHealth(message) {
    const { healthy, message: words } = decodeHealthCheckResponse(message)
    return healthy ? null : words || 'not healthy'
  },
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

/** Fields without presence read as 0 when they are not sent, so each of them is sent. */
function toSampling({ sampling, constraint, ...ask }: Ask) {
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
    stopTokenIds: ask.stopTokenIds,
    skipSpecialTokens: ask.skipsSpecialTokens,
    spacesBetweenSpecialTokens: true,
    regex: under(constraint, 'regex'),
    jsonSchema: under(constraint, 'json_schema'),
    ebnfGrammar: under(constraint, 'ebnf_grammar'),
    structuralTag: under(constraint, 'structural_tag'),
    n: ask.choices,
    ignoreEos: sampling.ignoreEos ?? false,
    noStopTrim: sampling.includesStop ?? false,
    logitBias: biasByText(sampling.logitBias),
  }
}
