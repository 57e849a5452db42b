/** Turns the deltas of one choice of a chat answer into events. @hot */
import { type EngineSink, type FinishReason, isObject, type NativeObject, type TokenLogprob } from '#kernel'
import { isAbort, readLogprobs, StopSearch, toImageItem, toLogprob } from '#shared'
import { fromChatAnnotation, type UncheckedChoice, type UncheckedDelta } from '../wire/chat.ts'
import { ToolCallEvents } from './tool-call-events.ts'

export class ChoiceEvents {
  readonly #index: number
  readonly #sink: EngineSink
  readonly #search: StopSearch | null
  #calls: ToolCallEvents | null = null
  #images = 0
  #extraContent: NativeObject | undefined
  /** The last that the worker gave; null if it gave none. */
  #reason: string | null = null
  #matchedStop: string | number | null = null
  #isOver = false

  /** @param stops stop strings that the worker does not know */
  constructor(index: number, sink: EngineSink, stops: readonly string[]) {
    this.#index = index
    this.#sink = sink
    this.#search = stops.length === 0 ? null : new StopSearch(stops, false)
  }

  /** True if it ended at a stop string that the worker does not know, so that the worker continues. */
  get isCutHere(): boolean {
    return this.#search !== null && this.#search.matched !== null
  }

  /** Whether the worker gave a finish reason. Some workers send more text after it. */
  get hasEnded(): boolean {
    return this.#isOver || this.#reason !== null
  }

  add(choice: UncheckedChoice): void {
    if (this.#isOver) return
    const delta = isObject(choice.delta) ? choice.delta : isObject(choice.message) ? choice.message : null
    if (delta !== null) this.#addDelta(delta, choice)
    else if (typeof choice.text === 'string') this.#text(choice.text, choice)
    if (this.isCutHere) {
      this.#reason = 'stop'
      this.#matchedStop = this.#search?.matched ?? null
      this.end()
    } else if (isText(choice.finish_reason)) {
      this.#reason = choice.finish_reason
      this.#matchedStop = matchedStop(choice)
    }
  }

  #addDelta(delta: UncheckedDelta, choice: UncheckedChoice): void {
    this.#reasoning(isText(delta.reasoning_content) ? delta.reasoning_content : delta.reasoning)
    const { content, refusal } = delta
    if (typeof content === 'string') this.#text(content, choice)
    else if (Array.isArray(content)) for (const part of content) this.#part(part, choice)
    if (this.isCutHere) return
    if (Array.isArray(delta.images)) for (const one of delta.images) this.#image(one, choice)
    // Sources are of the text, so they precede a refusal.
    if (Array.isArray(delta.annotations)) this.#annotations(delta.annotations)
    this.#refusal(refusal)
    if (isObject(delta.extra_content)) this.#extraContent = delta.extra_content
    if (Array.isArray(delta.tool_calls)) this.#toolCalls.add(delta.tool_calls)
    else if (isObject(delta.function_call)) this.#toolCalls.add([{ index: 0, function: delta.function_call }])
  }

  #text(text: string, choice: UncheckedChoice): void {
    if (text === '') return
    if (this.#search !== null) this.#plainText(this.#search.push(text))
    else this.#tokenText(text, choice)
  }

  /** Text that was held back for the stop search cannot be matched to its tokens. */
  #plainText(text: string): void {
    if (text === '') return
    this.#sink.emit({ type: 'text', choice: this.#index, delta: text, logprobs: null, tokenIds: null })
  }

  #tokenText(text: string, choice: UncheckedChoice): void {
    this.#sink.emit({
      type: 'text',
      choice: this.#index,
      delta: text,
      logprobs:
        choice.logprobs === undefined || choice.logprobs === null ? null : logprobsOf(choice.logprobs),
      tokenIds: Array.isArray(choice.token_ids) ? (choice.token_ids as number[]) : null,
    })
  }

  /** Some workers send content parts, as in requests; Mistral's have reasoning as a text or as parts of their own. */
  #part(part: unknown, choice: UncheckedChoice): void {
    if (!isObject(part)) return
    if (part.type === 'image_url') this.#image(part, choice)
    const { thinking } = part
    if (Array.isArray(thinking))
      for (const one of thinking as readonly unknown[]) this.#reasoning(isObject(one) ? one.text : one)
    else this.#reasoning(thinking)
    this.#refusal(part.refusal)
    if (typeof part.text !== 'string') return
    if (part.type === 'reasoning' || part.type === 'reasoning_text') this.#reasoning(part.text)
    else this.#text(part.text, choice)
  }

  /** An image is an output item; one at a URL is written as text. */
  #image(part: unknown, choice: UncheckedChoice): void {
    const image = isObject(part) ? part.image_url : null
    const url = isObject(image) ? image.url : image
    if (!isText(url)) return
    const item = toImageItem(url)
    if (item === null) {
      this.#text(`![image](${url})`, choice)
      return
    }
    this.#emitHeld()
    const which = { choice: this.#index, number: this.#images++, engine: 'responses' }
    const { result: _, ...begun } = item
    this.#sink.emit({ type: 'native_started', ...which, item: { ...begun, status: 'in_progress' } })
    this.#sink.emit({ type: 'native_item', ...which, item })
  }

  #reasoning(delta: unknown): void {
    if (!isText(delta)) return
    this.#emitHeld()
    this.#sink.emit({ type: 'reasoning', choice: this.#index, delta })
  }

  #refusal(delta: unknown): void {
    if (!isText(delta)) return
    this.#emitHeld()
    this.#sink.emit({ type: 'refusal', choice: this.#index, delta })
  }

  #annotations(annotations: readonly unknown[]): void {
    for (const one of annotations)
      this.#sink.emit({ type: 'annotation', choice: this.#index, annotation: fromChatAnnotation(one) })
  }

  /** Emits text that was held back: a stop string does not continue across other content. */
  #emitHeld(): void {
    if (this.#search !== null) this.#plainText(this.#search.end())
  }

  get #toolCalls(): ToolCallEvents {
    this.#emitHeld()
    this.#calls ??= new ToolCallEvents(this.#index, this.#sink)
    return this.#calls
  }

  /** The answer is over. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#emitHeld()
    const calls = this.#calls?.end() ?? 'none'
    this.#sink.emit({
      type: 'choice_done',
      choice: this.#index,
      reason: toReason(this.#reason, calls),
      ...(calls === 'cut' && this.#reason !== null && this.#reason !== 'length' && { hasBrokenCalls: true }),
      matchedStop: this.#matchedStop,
      ...(this.#extraContent !== undefined && { extraContent: this.#extraContent }),
    })
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Engines name the end of a turn with tool calls differently, so the calls decide. */
function toReason(reason: string | null, calls: ReturnType<ToolCallEvents['end']>): FinishReason {
  if (isAbort(reason)) return 'abort'
  switch (reason) {
    case 'length':
      return 'length'
    case 'content_filter':
      return 'content_filter'
    default:
      if (calls === 'cut') return 'length'
      return calls === 'complete' ? 'tool_calls' : 'stop'
  }
}

function matchedStop({
  matched_stop: matched,
  stop_reason: reason,
}: UncheckedChoice): string | number | null {
  if (typeof matched === 'string' || typeof matched === 'number') return matched
  return typeof reason === 'string' || typeof reason === 'number' ? reason : null
}

/** Log probabilities of a chat or completions choice; null if there are none. */
function logprobsOf(logprobs: unknown): TokenLogprob[] | null {
  if (!isObject(logprobs)) return null
  if (Array.isArray(logprobs.content)) return readLogprobs(logprobs.content)
  if (Array.isArray(logprobs.tokens)) return ofCompletion(logprobs)
  return null
}

function ofCompletion(logprobs: Record<string, unknown>): TokenLogprob[] {
  const tokens = logprobs.tokens as unknown[]
  const values = Array.isArray(logprobs.token_logprobs) ? logprobs.token_logprobs : []
  const tops = Array.isArray(logprobs.top_logprobs) ? logprobs.top_logprobs : []
  return tokens.map((token, at) => ({
    ...toLogprob({ token, logprob: values[at] as unknown }),
    top: isObject(tops[at])
      ? Object.entries(tops[at]).map(([text, logprob]) => toLogprob({ token: text, logprob }))
      : [],
  }))
}
