/** Fields of messages that several engines share: responses, loads and sampling settings. @hot */
import { type EngineConstraint, type EngineReport, isObject } from '#kernel'
import { readLoadReport } from '#shared'
import type * as vllm from '../../../../proto/gen/vllm-engine.ts'
import type { EngineOutput, EngineRequest, Runtime, TopTokens } from './runtime.ts'

/** The readers that are the same for all engines but TensorRT-LLM. */
export function commonReaders(wire: {
  decodeHealthCheckResponse(message: Buffer): { readonly healthy: boolean; readonly message: string }
  decodeGetModelInfoResponse(message: Buffer): object
  decodeGetServerInfoResponse(message: Buffer): object
}) {
  return {
    readHealth(bytes: Buffer): string | null {
      const { healthy, message } = wire.decodeHealthCheckResponse(bytes)
      return healthy ? null : message || 'not healthy'
    },
    readModelInfo: wire.decodeGetModelInfoResponse,
    readServerInfo: wire.decodeGetServerInfoResponse,
  }
}

/** Embeddings of vLLM and SGLang. */
export function commonEmbed(
  wire: Pick<typeof vllm, 'encodeEmbedRequest' | 'decodeEmbedResponse'>,
): Runtime['embed'] {
  return {
    encode: (requestId, inputIds, originalText) =>
      wire.encodeEmbedRequest(
        { requestId, tokenized: { originalText, inputIds } },
        inputIds.length * 3 + 256,
      ),
    read(message) {
      const { embedding, promptTokens } = wire.decodeEmbedResponse(message)
      return { values: embedding, promptTokens }
    },
  }
}

interface WireCounts {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly cachedTokens: number
  readonly reasoningTokens?: number
  readonly outputLogprobs:
    | { readonly tokenLogprobs: readonly number[]; readonly topLogprobs: readonly TopTokens[] }
    | undefined
}

interface WireChunk extends WireCounts {
  readonly tokenIds: readonly number[]
  /** Absent for engines with a single choice. */
  readonly index?: number
}

interface WireComplete extends WireCounts {
  readonly outputIds: readonly number[]
  readonly finishReason: string
  readonly matchedTokenId?: number | undefined
  readonly matchedStopStr?: string | undefined
  readonly index: number
}

/** Common members of a message: a chunk of a choice, its end, or neither for an unknown type of message. */
export function outputOf({
  chunk,
  complete,
}: {
  readonly chunk: WireChunk | undefined
  readonly complete: WireComplete | undefined
}): EngineOutput {
  if (chunk !== undefined) return chunkOutput(chunk)
  return complete === undefined ? emptyOutput() : completeOutput(complete)
}

function chunkOutput(chunk: WireChunk): EngineOutput {
  const response = countsOf(chunk)
  response.index = chunk.index ?? 0
  response.tokenIds = chunk.tokenIds
  return response
}

function completeOutput(complete: WireComplete): EngineOutput {
  const response = countsOf(complete)
  response.isComplete = true
  response.index = complete.index
  response.tokenIds = complete.outputIds
  response.finishReason = complete.finishReason
  response.matchedStop = complete.matchedStopStr ?? complete.matchedTokenId ?? null
  return response
}

function countsOf(counts: WireCounts): EngineOutput {
  const { outputLogprobs } = counts
  const response = emptyOutput()
  response.promptTokens = counts.promptTokens
  response.completionTokens = counts.completionTokens
  response.cachedTokens = counts.cachedTokens
  response.reasoningTokens = counts.reasoningTokens ?? 0
  if (outputLogprobs !== undefined) {
    response.logprobs = outputLogprobs.tokenLogprobs
    response.top = outputLogprobs.topLogprobs
  }
  return response
}

/** For unknown message types. */
export function emptyOutput(): EngineOutput {
  return {
    isComplete: false,
    index: 0,
    tokenIds: [],
    promptTokens: 0,
    completionTokens: 0,
    cachedTokens: 0,
    reasoningTokens: 0,
    finishReason: '',
    matchedStop: null,
    logprobs: null,
    top: [],
    named: [],
    promptLogprobs: null,
    transferJson: null,
  }
}

/** Reads a load report, whose fields have the names of the HTTP route in camel case. */
export function readLoads(report: {
  readonly timestamp: string
  readonly loads: readonly object[]
}): EngineReport | null {
  return readLoadReport({ timestamp: report.timestamp || null, loads: report.loads.map(snakeKeys) })
}

function snakeKeys(fields: object): Record<string, unknown> {
  const entries = Object.entries(fields).map(([name, value]) => [
    toSnake(name),
    isObject(value) ? snakeKeys(value) : value,
  ])
  return Object.fromEntries(entries)
}

/** The name of a field in snake case. */
export function toSnake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Settings that all of these engines name alike. */
function commonSampling({ sampling, stopTokenIds, skipsSpecialTokens, choices }: EngineRequest) {
  return {
    topP: sampling.topP ?? 1,
    minP: sampling.minP ?? 0,
    frequencyPenalty: sampling.frequencyPenalty ?? 0,
    presencePenalty: sampling.presencePenalty ?? 0,
    repetitionPenalty: sampling.repetitionPenalty ?? 1,
    stopTokenIds,
    skipSpecialTokens: skipsSpecialTokens,
    spacesBetweenSpecialTokens: true,
    n: choices,
    ignoreEos: sampling.ignoreEos ?? false,
  }
}

/** Settings of the schedulers of SGLang and TokenSpeed. Sets every field, since absent ones read as 0 or as a default. */
export function schedulerSampling(request: EngineRequest) {
  const { sampling, constraint } = request
  return {
    ...commonSampling(request),
    temperature: sampling.temperature ?? 1,
    topK: sampling.topK ?? -1,
    maxNewTokens: sampling.maxTokens,
    minNewTokens: sampling.minTokens ?? 0,
    regex: constraintText(constraint, 'regex'),
    jsonSchema: constraintText(constraint, 'json_schema'),
    ebnfGrammar: constraintText(constraint, 'ebnf_grammar'),
    structuralTag: constraintText(constraint, 'structural_tag'),
    noStopTrim: sampling.includesStop ?? false,
    logitBias: biasByText(sampling.logitBias),
  }
}

/** Logit bias by token ids as decimal strings. */
function biasByText(bias: ReadonlyMap<number, number> | undefined): ReadonlyMap<string, number> | undefined {
  if (bias === undefined || bias.size === 0) return undefined
  return new Map([...bias].map(([id, value]) => [String(id), value]))
}

/** Settings of vLLM and MLX, of which MLX ignores those that it lacks. */
export function engineSampling(request: EngineRequest) {
  const { sampling, constraint } = request
  const { topK = 0, seed } = sampling
  return {
    ...commonSampling(request),
    temperature: sampling.temperature,
    // 0 disables it in these engines.
    topK: Math.max(0, topK),
    maxTokens: sampling.maxTokens,
    minTokens: sampling.minTokens ?? 0,
    stop: sampling.stop ?? [],
    logprobs: topLogprobsOf(request, 1),
    seed: seed === undefined ? undefined : Math.min(MAX_INT32, Math.max(0, Math.trunc(seed))),
    includeStopStrInOutput: sampling.includesStop ?? false,
    logitBias: sampling.logitBias,
    jsonSchema: constraintText(constraint, 'json_schema'),
    regex: constraintText(constraint, 'regex'),
    grammar: constraintText(constraint, 'grammar'),
    structuralTag: constraintText(constraint, 'structural_tag'),
  }
}

/** Text of the constraint if it has this name. */
function constraintText(constraint: EngineConstraint | null, name: string): string | undefined {
  return constraint?.name === name ? constraint.text : undefined
}

const MAX_INT32 = 2_147_483_647

/** Most alternatives per token that an engine accepts, by kind of request. */
const MAX_TOP_LOGPROBS: Readonly<Record<EngineRequest['kind'], number>> = { chat: 20, text: 5 }

/** Alternatives per token within the limits of an engine; undefined disables log probabilities. */
export function topLogprobsOf({ topLogprobs, kind }: EngineRequest, fewest: 0 | 1): number | undefined {
  if (topLogprobs === null) return undefined
  return Math.min(Math.max(topLogprobs, fewest), MAX_TOP_LOGPROBS[kind])
}
