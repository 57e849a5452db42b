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

export const tokenspeed: Runtime = {
  name: 'tokenspeed',
  paths: enginePaths(paths),
  stopStrings: 'supported',
  maxChoices: Number.POSITIVE_INFINITY,
  pairing: { kind: 'bootstrap', roomBits: 63 },
  countsByMessage: false,
  reportsNamedLogprobs: false,
  hasDefaults: true,
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
        stream: request.stream,
        dataParallelRank: request.rank ?? undefined,
        ...(request.pair?.meeting !== undefined && {
          kvBootstrapInfo: {
            bootstrapHost: request.pair.meeting.host,
            bootstrapPort: request.pair.meeting.port,
            bootstrapRoom: request.pair.meeting.room,
          },
        }),
      },
      request.tokenIds.length * 3 + request.text.length + 512,
    ),
  encodeAbort: (requestId) => encodeAbortRequest({ requestId, reason: 'client disconnected' }),
  readResponse(message) {
    const { chunk, complete } = decodeGenerateResponse(message)
    if (chunk !== undefined) return chunkOutput(chunk)
    return complete === undefined ? emptyOutput() : completeResponse(complete)
  },
  readHealth: (message) => healthProblem(decodeHealthCheckResponse(message)),
  readModelInfo: (message) => ({ ...decodeGetModelInfoResponse(message) }),
  readServerInfo: (message) => ({ ...decodeGetServerInfoResponse(message) }),
  readLoads: (message) => toReport(decodeGetLoadsResponse(message)),
}

/** Sends all scalars, so that no default of the engine applies. */
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
    stop: sampling.stop ?? [],
    stopTokenIds: request.stopTokenIds,
    ignoreEos: sampling.ignoreEos ?? false,
    skipSpecialTokens: request.skipsSpecialTokens,
    spacesBetweenSpecialTokens: true,
    n: request.choices,
    logitBias: biasByText(sampling.logitBias),
    regex: constraintText(constraint, 'regex'),
    jsonSchema: constraintText(constraint, 'json_schema'),
    ebnfGrammar: constraintText(constraint, 'ebnf_grammar'),
    structuralTag: constraintText(constraint, 'structural_tag'),
    noStopTrim: sampling.includesStop ?? false,
    samplingSeed: sampling.seed === undefined ? undefined : BigInt(Math.max(0, Math.trunc(sampling.seed))),
  }
}
