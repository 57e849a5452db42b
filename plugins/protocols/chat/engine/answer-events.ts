/** Turns the chunks of a chat worker's answer into the events of a generation. @hot */
import { type EngineAttempt, type EngineSink, type GenerationUsage, isObject } from '#kernel'
import { tokenCount, type Unchecked } from '#shared'
import type { UncheckedChoice, UncheckedResponse } from '../wire/chat.ts'
import type { Usage } from '../wire/fields.ts'
import { ChoiceEvents } from './choice-events.ts'
import { unsentStops } from './to-chat-body.ts'

export class AnswerEvents {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  readonly #stops: readonly string[]
  readonly #choices = new Map<number, ChoiceEvents>()
  #hasStarted = false
  #usage: GenerationUsage | null = null

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#attempt = attempt
    this.#sink = sink
    this.#stops = unsentStops(attempt)
  }

  /** True if every choice that began has a finish reason. */
  get hasEnded(): boolean {
    if (this.#choices.size === 0) return false
    for (const choice of this.#choices.values()) if (!choice.hasEnded) return false
    return true
  }

  /** True if every choice has ended, at least one at a stop string that the worker does not know. */
  get isCutHere(): boolean {
    if (this.#stops.length === 0 || !this.hasEnded) return false
    for (const choice of this.#choices.values()) if (choice.isCutHere) return true
    return false
  }

  add(answer: UncheckedResponse): void {
    const usage = readUsage(answer.usage)
    if (usage !== null) this.#usage = usage
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

  finish(): void {
    for (const choice of this.#choices.values()) choice.end(null, null)
    this.#sink.emit({ type: 'finished', usage: this.#usage })
  }

  #start(answer: UncheckedResponse): void {
    this.#hasStarted = true
    const { id, model, created, system_fingerprint: fingerprint } = answer
    this.#sink.emit({
      type: 'started',
      id: typeof id === 'string' ? id : null,
      model: typeof model === 'string' && model !== '' ? model : this.#attempt.model,
      createdAtSec: typeof created === 'number' && created > 0 ? created : Math.floor(Date.now() / 1000),
      inputTokens: this.#usage === null ? null : this.#usage.inputTokens,
      systemFingerprint: typeof fingerprint === 'string' ? fingerprint : null,
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

function readUsage(usage: unknown): GenerationUsage | null {
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
  }
}
