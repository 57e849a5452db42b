/** One choice of a chat answer: its deltas as events, its tool calls told apart however the engine numbers them. @hot */
import type { EngineSink, FinishReason } from '#kernel'
import { StopSearch } from '#shared'
import { isObject, type WireChoice, type WireDelta } from './chat-chunk.ts'
import { readLogprobs } from './logprobs.ts'
import { ToolCallEvents } from './tool-call-events.ts'

export class ChoiceEvents {
  hasEnded = false
  readonly #index: number
  readonly #sink: EngineSink
  readonly #search: StopSearch | null
  #calls: ToolCallEvents | null = null

  /** @param stops those that the worker does not look for itself */
  constructor(index: number, sink: EngineSink, stops: readonly string[]) {
    this.#index = index
    this.#sink = sink
    this.#search = stops.length === 0 ? null : new StopSearch(stops, false)
  }

  /** It ended at a stop that the worker knows nothing of, and goes on writing behind. */
  get isCutHere(): boolean {
    return this.#search !== null && this.#search.matched !== null
  }

  add(choice: WireChoice): void {
    if (this.hasEnded) return
    const delta = isObject(choice.delta) ? choice.delta : isObject(choice.message) ? choice.message : null
    if (delta !== null) this.#addDelta(delta, choice)
    else if (typeof choice.text === 'string') this.#text(choice.text, choice)
    if (this.isCutHere) this.end('stop', this.#search?.matched ?? null)
    else if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '')
      this.end(choice.finish_reason, matchedStop(choice))
  }

  #addDelta(delta: WireDelta, choice: WireChoice): void {
    const reasoning = delta.reasoning_content ?? delta.reasoning
    if (typeof reasoning === 'string' && reasoning !== '') {
      this.#tellHeld()
      this.#sink.emit({ type: 'reasoning', choice: this.#index, delta: reasoning })
    }
    const { content, refusal } = delta
    if (typeof content === 'string') this.#text(content, choice)
    else if (Array.isArray(content)) for (const part of content) this.#part(part, choice)
    if (this.isCutHere) return
    if (typeof refusal === 'string' && refusal !== '') {
      this.#tellHeld()
      this.#sink.emit({ type: 'refusal', choice: this.#index, delta: refusal })
    }
    if (Array.isArray(delta.annotations)) this.#annotations(delta.annotations)
    if (Array.isArray(delta.tool_calls)) this.#toolCalls.add(delta.tool_calls)
    else if (isObject(delta.function_call)) this.#toolCalls.add([{ index: 0, function: delta.function_call }])
  }

  #text(text: string, choice: WireChoice): void {
    if (text === '') return
    if (this.#search !== null) this.#plainText(this.#search.push(text))
    else this.#tokenText(text, choice)
  }

  /** Of text that was held back nobody knows which tokens it was. */
  #plainText(text: string): void {
    if (text === '') return
    this.#sink.emit({ type: 'text', choice: this.#index, delta: text, logprobs: null, tokenIds: null })
  }

  #tokenText(text: string, choice: WireChoice): void {
    this.#sink.emit({
      type: 'text',
      choice: this.#index,
      delta: text,
      logprobs:
        choice.logprobs === undefined || choice.logprobs === null ? null : readLogprobs(choice.logprobs),
      tokenIds: Array.isArray(choice.token_ids) ? (choice.token_ids as number[]) : null,
    })
  }

  /** Some workers answer with parts, as requests have them. */
  #part(part: unknown, choice: WireChoice): void {
    if (isObject(part) && typeof part.text === 'string') this.#text(part.text, choice)
  }

  #annotations(annotations: readonly unknown[]): void {
    for (const annotation of annotations)
      this.#sink.emit({ type: 'annotation', choice: this.#index, annotation })
  }

  /** No stop goes on behind what is no text: what was held back is text after all. */
  #tellHeld(): void {
    if (this.#search !== null) this.#plainText(this.#search.end())
  }

  get #toolCalls(): ToolCallEvents {
    this.#tellHeld()
    this.#calls ??= new ToolCallEvents(this.#index, this.#sink)
    return this.#calls
  }

  /** @param reason the worker's word; null when it gave none */
  end(reason: string | null, stop: string | number | null): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.#tellHeld()
    const hasCalls = this.#calls?.end() ?? false
    this.#sink.emit({
      type: 'choice_done',
      choice: this.#index,
      reason: toReason(reason, hasCalls),
      matchedStop: stop,
    })
  }
}

/** Engines differ in what they call the end of a turn with tool calls: the calls decide. */
function toReason(reason: string | null, hasCalls: boolean): FinishReason {
  switch (reason) {
    case 'length':
      return 'length'
    case 'content_filter':
      return 'content_filter'
    case 'abort':
    case 'error':
      return 'abort'
    default:
      return hasCalls ? 'tool_calls' : 'stop'
  }
}

function matchedStop({ matched_stop: matched, stop_reason: reason }: WireChoice): string | number | null {
  if (typeof matched === 'string' || typeof matched === 'number') return matched
  return typeof reason === 'string' || typeof reason === 'number' ? reason : null
}
