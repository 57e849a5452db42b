/** The engine adapter of HTTP workers that take chat completions, and the readers of their answers. @hot */
import {
  breakdownOf,
  defineErrors,
  type EngineAdapter,
  type EngineAttempt,
  type EngineSink,
  type GatewayError,
  type GenerationUsage,
  isObject,
  type JsonObject,
  type WorkerMessage,
} from '#kernel'
import {
  type AnswerLimits,
  errorOfEvent,
  type JsonAnswer,
  jsonAnswerReader,
  LeftOut,
  readAnswerObject,
  streamFailure,
  tokenCount,
  type Unchecked,
} from '#shared'
import type { UncheckedChoice, UncheckedResponse } from '../wire/chat.ts'
import type { Usage } from '../wire/fields.ts'
import { ChoiceEvents } from './choice-events.ts'
import { ignoredByChat, toChatBody, toCompletionBody, unsentStops } from './to-chat-body.ts'
import { CHUNK, isPlainChunk } from './translated.ts'

const chatEngineErrors = defineErrors('chat-engine', {
  worker_stream_unfinished: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the worker ended its stream with [DONE] but without a finish_reason',
  },
})

export interface ChatEngineSettings extends AnswerLimits {
  /** Whether engines get one system message in front, or all as they are. */
  readonly systemMessages: 'merge' | 'keep'
}

export function chatEngine({ maxAnswerBytes, systemMessages }: ChatEngineSettings): EngineAdapter {
  return {
    name: 'chat',
    accepts: (worker) => worker.apis.includes('chat'),
    requestFor(attempt) {
      return attempt.request.prompt.kind === 'chat'
        ? {
            method: 'POST',
            path: '/v1/chat/completions',
            body: toChatBody(attempt, systemMessages === 'merge'),
          }
        : { method: 'POST', path: '/v1/completions', body: toCompletionBody(attempt) }
    },
    ignored: ignoredByChat,
    read: (attempt, sink) => jsonAnswerReader(new ChatAnswer(attempt, sink), sink, maxAnswerBytes),
  }
}

/** Workers that take completions only: prompts of texts and tokens. */
export function completionsEngine(settings: ChatEngineSettings): EngineAdapter {
  return {
    ...chatEngine(settings),
    name: 'completions',
    // An adapter of a plugin takes precedence.
    rank: -1,
    accepts: (worker) => worker.apis.includes('completions'),
    promptKinds: ['text', 'tokens'],
  }
}

/** Turns the chunks of an answer, or the whole answer, into the events of a generation. */
export class ChatAnswer implements JsonAnswer {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  readonly #stops: readonly string[]
  readonly #choices = new Map<number, ChoiceEvents>()
  #hasStarted = false
  #usage: GenerationUsage | null = null
  readonly #leftOut = new LeftOut()

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#attempt = attempt
    this.#sink = sink
    this.#stops = unsentStops(attempt)
  }

  /** True if every choice that began has a finish reason. */
  get #hasEnded(): boolean {
    if (this.#choices.size === 0) return false
    for (const choice of this.#choices.values()) if (!choice.hasEnded) return false
    return true
  }

  /** True if every choice has ended, at least one at a stop string that the worker does not know. */
  get #isCutHere(): boolean {
    if (this.#stops.length === 0 || !this.#hasEnded) return false
    for (const choice of this.#choices.values()) if (choice.isCutHere) return true
    return false
  }

  addEvent(chunk: JsonObject): boolean {
    this.#add(chunk)
    if (!this.#isCutHere) return false
    this.#finish()
    this.#sink.stop()
    return true
  }

  /** Some workers write `[DONE]` after an answer that was cut off: its choices have no finish reason then. */
  addDone(): boolean {
    if (this.#hasEnded) this.#finish()
    else this.#sink.fail(chatEngineErrors.worker_stream_unfinished())
    return true
  }

  /** Without `[DONE]` the answer is complete if its choices have ended. */
  endStream(): void {
    if (this.#hasEnded) this.#finish()
  }

  /** @throws as `readAnswerObject`, TypeError without a choice */
  addWhole(text: string): void {
    const answer = readAnswerObject(text)
    const error = errorOfEvent(answer, null)
    if (error !== null) this.#sink.fail(this.toError(error))
    else {
      // A client would take it for an empty answer.
      if (!Array.isArray(answer.choices) || !answer.choices.some(isObject))
        throw new TypeError('the answer holds no choices')
      this.#add(answer)
      this.#finish()
    }
  }

  toError({ text }: WorkerMessage): GatewayError {
    return streamFailure(text)
  }

  #add(answer: UncheckedResponse): void {
    if (!isPlainChunk(answer)) this.#leftOut.addFrom(answer, CHUNK)
    const usage = readUsage(answer)
    if (usage !== null) this.#addUsage(usage)
    if (!this.#hasStarted) this.#start(answer)
    if (!Array.isArray(answer.choices)) return
    for (const choice of answer.choices as UncheckedChoice[]) {
      if (!isObject(choice)) continue
      const index = typeof choice.index === 'number' ? choice.index : 0
      // Others were not requested, and no client expects them.
      if (Number.isInteger(index) && index >= 0 && index < this.#attempt.request.choices)
        this.#choice(index).add(choice)
    }
  }

  /** Some engines report the usage of each choice in an event of its own; the prompt counts once. */
  #addUsage(usage: GenerationUsage): void {
    const { request, quirks } = this.#attempt
    const before = this.#usage
    const isOfChoice = before !== null && request.choices > 1 && quirks.reportsPerChoice === true
    this.#usage = isOfChoice ? { ...before, outputTokens: before.outputTokens + usage.outputTokens } : usage
  }

  #finish(): void {
    this.#leftOut.report(this.#attempt.ctx)
    for (const choice of this.#choices.values()) choice.end()
    this.#sink.emit({ type: 'finished', usage: this.#usage })
  }

  #start(answer: UncheckedResponse): void {
    this.#hasStarted = true
    const { id, model, created, system_fingerprint: fingerprint, service_tier: tier } = answer
    this.#sink.emit({
      type: 'started',
      id: typeof id === 'string' ? id : null,
      model: typeof model === 'string' && model !== '' ? model : this.#attempt.model,
      createdAtSec: typeof created === 'number' && created > 0 ? created : Math.floor(Date.now() / 1000),
      inputTokens: this.#usage === null ? null : this.#usage.inputTokens,
      systemFingerprint: typeof fingerprint === 'string' ? fingerprint : null,
      ...(typeof tier === 'string' && { serviceTier: tier }),
      worker: this.#attempt.worker,
    })
  }

  #choice(index: number): ChoiceEvents {
    let choice = this.#choices.get(index)
    if (choice === undefined) {
      choice = new ChoiceEvents(index, this.#sink, this.#stops)
      this.#choices.set(index, choice)
    }
    return choice
  }
}

function readUsage({ usage, service_tier }: UncheckedResponse): GenerationUsage | null {
  if (!isObject(usage)) return null
  const { prompt_tokens: input, completion_tokens: output, ...details }: Unchecked<Usage> = usage
  const prompt = isObject(details.prompt_tokens_details) ? details.prompt_tokens_details : null
  const completion = isObject(details.completion_tokens_details) ? details.completion_tokens_details : null
  return {
    inputTokens: tokenCount(input),
    cachedTokens: tokenCount(prompt?.cached_tokens),
    cacheWriteTokens: tokenCount(prompt?.cache_write_tokens ?? prompt?.cache_creation_tokens),
    outputTokens: tokenCount(output),
    reasoningTokens: tokenCount(completion?.reasoning_tokens ?? usage.reasoning_tokens),
    breakdown: breakdownOf(usage, service_tier),
  }
}
