/** TokenSpeed's scheduler over gRPC. */
import {
  decodeGenerateResponse,
  decodeGetLoadsResponse,
  decodeGetModelInfoResponse,
  decodeGetServerInfoResponse,
  decodeHealthCheckResponse,
  encodeAbortRequest,
  encodeGenerateRequest,
  TokenSpeedScheduler as paths,
} from '../../../../proto/gen/tokenspeed-scheduler.ts'
import { toReport } from './loads.ts'
import { choiceOf, emptyReply, pieceOf } from './replies.ts'
import type { Ask, Runtime } from './runtime.ts'
import { biasByText, under } from './sampling.ts'

export const tokenspeed: Runtime = {
  name: 'tokenspeed',
  paths: {
    generate: paths.Generate,
    abort: paths.Abort,
    health: paths.HealthCheck,
    modelInfo: paths.GetModelInfo,
    serverInfo: paths.GetServerInfo,
    loads: paths.GetLoads,
    flushCache: paths.FlushCache,
    startProfile: paths.StartProfile,
    stopProfile: paths.StopProfile,
    kvEvents: paths.SubscribeKvEvents,
  },
  stopStrings: 'takes',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'meets', roomBits: 63 },
  countsByMessage: false,
  tellsNamedLogprobs: false,
  hasDefaults: true,
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
        stream: ask.stream,
        dataParallelRank: ask.rank ?? undefined,
        ...(ask.pair?.meeting !== undefined && {
          kvBootstrapInfo: {
            bootstrapHost: ask.pair.meeting.host,
            bootstrapPort: ask.pair.meeting.port,
            bootstrapRoom: ask.pair.meeting.room,
          },
        }),
      },
      ask.tokenIds.length * 3 + ask.text.length + 512,
    ),
  encodeAbort: (requestId) => encodeAbortRequest({ requestId, reason: 'the client left' }),
  readReply(message) {
    const { chunk, complete } = decodeGenerateResponse(message)
    if (chunk !== undefined) return pieceOf(chunk)
    return complete === undefined ? emptyReply() : choiceOf(complete)
  },
  readHealth(message) {
    const { healthy, message: words } = decodeHealthCheckResponse(message)
    return healthy ? null : words || 'not healthy'
  },
  readModelInfo: (message) => ({ ...decodeGetModelInfoResponse(message) }),
  readServerInfo: (message) => ({ ...decodeGetServerInfoResponse(message) }),
  readLoads: (message) => toReport(decodeGetLoadsResponse(message)),
}

/** All seven scalars are told, so that none of the engine's own defaults comes in. */
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
    stop: sampling.stop ?? [],
    stopTokenIds: ask.stopTokenIds,
    ignoreEos: sampling.ignoreEos ?? false,
    skipSpecialTokens: ask.skipsSpecialTokens,
    spacesBetweenSpecialTokens: true,
    n: ask.choices,
    logitBias: biasByText(sampling.logitBias),
    regex: under(constraint, 'regex'),
    jsonSchema: under(constraint, 'json_schema'),
    ebnfGrammar: under(constraint, 'ebnf_grammar'),
    structuralTag: under(constraint, 'structural_tag'),
    noStopTrim: sampling.includesStop ?? false,
    samplingSeed: sampling.seed === undefined ? undefined : BigInt(Math.max(0, Math.trunc(sampling.seed))),
  }
}
