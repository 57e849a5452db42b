/**
 * The engine adapter of HTTP workers that take native generation only (`/generate` of SGLang): prompts of texts and tokens. @hot
 *
 * @source https://docs.sglang.ai/basic_usage/native_api.html
 */
import {
  type EngineAdapter,
  type EngineAttempt,
  type EngineSink,
  type FinishReason,
  type GatewayError,
  type IdLogprob,
  isObject,
  type JsonObject,
  type OutputConstraint,
  type PromptLogprob,
  parseBoundedText,
  type TokenLogprob,
  type WorkerMessage,
} from '#kernel'
import {
  type AnswerLimits,
  ENGINE_SETTINGS,
  errorOfEvent,
  type JsonAnswer,
  jsonAnswerReader,
  SHARED_SETTINGS,
  streamFailure,
  tokenCount,
} from '#shared'

export function generateEngine({ maxAnswerBytes }: AnswerLimits): EngineAdapter {
  return {
    name: 'generate',
    // Workers with another format get that one; an adapter of a plugin takes precedence.
    rank: -2,
    accepts: (worker) => worker.apis.includes('generate'),
    promptKinds: ['text', 'tokens'],
    requestFor: (attempt) => ({ method: 'POST', path: '/generate', body: toGenerateBody(attempt) }),
    read: (attempt, sink) => jsonAnswerReader(new GenerateAnswer(attempt, sink), sink, maxAnswerBytes),
  }
}

function toGenerateBody({ request, model, stream }: EngineAttempt): Buffer {
  const { prompt, topLogprobs, promptLogprobsFrom, logprobsOf, carried } = request
  const sampling: Record<string, unknown> = toConstraint(request.constraint)
  for (const [name, wireName] of SAMPLING_NAMES)
    if (request.sampling[name] !== undefined) sampling[wireName] = request.sampling[name]
  if (request.choices !== 1) sampling.n = request.choices
  const rid = carried?.get('rid')
  return Buffer.from(
    JSON.stringify({
      model,
      ...(prompt.kind === 'tokens' ? { input_ids: [...prompt.tokenIds] } : {}),
      ...(prompt.kind === 'text' ? { text: prompt.text } : {}),
      sampling_params: sampling,
      ...(topLogprobs !== null && { return_logprob: true, top_logprobs_num: topLogprobs }),
      ...(promptLogprobsFrom !== undefined && { logprob_start_len: promptLogprobsFrom }),
      ...(logprobsOf !== undefined && { token_ids_logprob: logprobsOf }),
      ...(rid !== undefined && { rid }),
      stream,
    }),
  )
}

/** Settings whose names differ from those of chats. */
const RENAMED: Readonly<Record<string, string>> = {
  seed: 'sampling_seed',
  max_tokens: 'max_new_tokens',
  min_tokens: 'min_new_tokens',
}

const SAMPLING_NAMES = [...SHARED_SETTINGS, ...ENGINE_SETTINGS]
  .filter(([name]) => name !== 'logitBias')
  .map(([name, wireName]) => [name, RENAMED[wireName] ?? wireName] as const)

function toConstraint(constraint: OutputConstraint | null): Record<string, unknown> {
  switch (constraint?.kind) {
    case 'json_object':
      return { json_schema: '{"type":"object"}' }
    case 'json_schema':
      return { json_schema: JSON.stringify(constraint.schema) }
    case 'structural_tag':
      return { structural_tag: JSON.stringify(constraint.tag) }
    case 'regex':
      return { regex: constraint.pattern }
    case 'ebnf':
      return { ebnf: constraint.grammar }
    default:
      return {}
  }
}

interface OpenChoice {
  text: string
  tokens: number
  sendsPieces: boolean
  hasEnded: boolean
}

/**
 * Turns answers into the events of a generation. Each event of a stream has the whole text of its choice so far, or only the new
 * text if the engine was started so; ids and log probabilities likewise.
 */
export class GenerateAnswer implements JsonAnswer {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  readonly #choices = new Map<number, OpenChoice>()
  #hasStarted = false
  #promptTokens = 0
  #cachedTokens = 0

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#attempt = attempt
    this.#sink = sink
  }

  /** @param text of one choice, or of a list with one of each */
  addWhole(text: string): void {
    const answer = parseBoundedText(text)
    const choices: readonly unknown[] = Array.isArray(answer) ? answer : [answer]
    for (const [index, choice] of choices.entries()) {
      if (!isObject(choice)) throw new TypeError('the answer holds no JSON object')
      const error = errorOfEvent(choice, null)
      if (error !== null) this.#sink.fail(this.toError(error))
      if (error !== null || this.addEvent({ ...choice, index })) return
    }
    this.addDone()
  }

  toError({ text }: WorkerMessage): GatewayError {
    return streamFailure(text)
  }

  /** @returns true if the engine has aborted: the answer has failed */
  addEvent({ text, output_ids: ids, meta_info: info, index: given }: JsonObject): boolean {
    const meta = isObject(info) ? info : {}
    const index = typeof given === 'number' ? given : 0
    // Others were not requested, and no client expects them.
    if (!Number.isInteger(index) || index < 0 || index >= this.#attempt.request.choices) return false
    if (!this.#hasStarted) this.#start(meta)
    const choice = this.#choiceOf(index)
    if (choice.hasEnded) return false
    this.#promptTokens = tokenCount(meta.prompt_tokens, this.#promptTokens)
    this.#cachedTokens = tokenCount(meta.cached_tokens, this.#cachedTokens)
    const count = tokenCount(meta.completion_tokens, choice.tokens)
    const tokenIds = listOf<number>(ids)
    const fresh = Math.max(0, count - choice.tokens)
    const delta = addText(choice, text)
    const end = reasonOf(meta.finish_reason)
    // Tokens without text, such as part of a character, are those of the next text.
    if (delta === '' && end === null) return false
    choice.tokens = count
    const facts = {
      tokenIds: newest(tokenIds, fresh),
      logprobs: this.#attempt.request.topLogprobs === null ? null : logprobsOf(meta, fresh),
    }
    if (end?.reason === 'abort') {
      this.#sink.fail(streamFailure(end.message))
      return true
    }
    if (delta !== '') this.#sink.emit({ type: 'text', choice: index, delta, ...facts })
    if (end === null) return false
    choice.hasEnded = true
    this.#sink.emit({
      type: 'choice_done',
      choice: index,
      reason: end.reason,
      matchedStop: end.matched ?? stopOf(meta.matched_stop),
      ...(delta === '' && facts),
    })
    return false
  }

  /** An answer whose choices have not all ended was cut off, as one whose stream has no `[DONE]`. */
  addDone(): boolean {
    let outputTokens = 0
    for (const { tokens, hasEnded } of this.#choices.values()) {
      if (!hasEnded) return true
      outputTokens += tokens
    }
    if (this.#choices.size === 0) return true
    this.#sink.emit({
      type: 'finished',
      usage: {
        inputTokens: this.#promptTokens,
        cachedTokens: this.#cachedTokens,
        cacheWriteTokens: 0,
        outputTokens,
        reasoningTokens: 0,
      },
    })
    return true
  }

  #start({ id, prompt_tokens, weight_version: weights, input_token_logprobs: ofPrompt }: JsonObject): void {
    this.#hasStarted = true
    this.#sink.emit({
      type: 'started',
      id: typeof id === 'string' && id !== '' ? id : null,
      model: this.#attempt.model,
      createdAtSec: Math.floor(Date.now() / 1000),
      inputTokens: typeof prompt_tokens === 'number' ? prompt_tokens : null,
      systemFingerprint: typeof weights === 'string' ? weights : null,
      ...(Array.isArray(ofPrompt) && {
        promptLogprobs: ofPrompt.map(([logprob, tokenId]: PromptLogprob) => [logprob, tokenId] as const),
      }),
      worker: this.#attempt.worker,
    })
  }

  #choiceOf(index: number): OpenChoice {
    let choice = this.#choices.get(index)
    if (choice === undefined) {
      choice = { text: '', tokens: 0, sendsPieces: false, hasEnded: false }
      this.#choices.set(index, choice)
    }
    return choice
  }
}

/** @returns the new text */
function addText(choice: OpenChoice, text: unknown): string {
  if (typeof text !== 'string') return ''
  // Later pieces may begin like the text so far; ids do not tell, as engines send new ones beside the whole text.
  choice.sendsPieces ||= !text.startsWith(choice.text)
  const delta = choice.sendsPieces ? text : text.slice(choice.text.length)
  if (!choice.sendsPieces) choice.text = text
  return delta
}

/** The entries of the new tokens, whether the list has all tokens so far or only those. */
function newest<T>(list: readonly T[], count: number): readonly T[] {
  return count >= list.length ? list : list.slice(list.length - count)
}

type Entry = readonly [logprob: number, tokenId: number, text?: string | null]

function logprobsOf(meta: JsonObject, count: number): readonly TokenLogprob[] {
  const tops = newest(listOf<readonly Entry[] | null>(meta.output_top_logprobs), count)
  const named = newest(listOf<readonly Entry[] | null>(meta.output_token_ids_logprobs), count)
  return newest(listOf<Entry>(meta.output_token_logprobs), count).map((entry, at) => ({
    ...tokenOf(entry),
    top: tops[at]?.map(tokenOf) ?? [],
    topIds: tops[at]?.map(([, id]) => id) ?? [],
    ...(named[at] && { named: named[at].map(([logprob, id]): IdLogprob => [logprob, id]) }),
  }))
}

function tokenOf([logprob, , text]: Entry): Pick<TokenLogprob, 'token' | 'logprob' | 'bytes'> {
  return { token: text ?? '', logprob, bytes: null }
}

function listOf<T>(value: unknown): readonly T[] {
  return Array.isArray(value) ? (value as T[]) : []
}

interface End {
  readonly reason: FinishReason
  readonly matched: string | number | null
  readonly message: string
}

/** @returns null before the end */
function reasonOf(given: unknown): End | null {
  if (typeof given === 'string') return { reason: toReason(given), matched: null, message: given }
  if (!isObject(given)) return null
  const { type, matched, message } = given
  return {
    reason: toReason(type),
    matched: stopOf(matched),
    message: typeof message === 'string' ? message : 'the engine aborted the request',
  }
}

function toReason(type: unknown): FinishReason {
  return type === 'length' || type === 'abort' ? type : 'stop'
}

function stopOf(value: unknown): string | number | null {
  return typeof value === 'string' || typeof value === 'number' ? value : null
}
