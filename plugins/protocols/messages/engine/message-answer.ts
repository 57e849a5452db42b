/** What a worker says in the format, event by event, as the events of a generation. */

import type { EngineAttempt, EngineSink, FinishReason, GatewayError } from '#kernel'
import { answerErrors } from '#shared'
import { AnswerUsage } from './answer-usage.ts'
import { NativeBlocks } from './native-blocks.ts'

type Json = Record<string, unknown>

/** Name of the adapter. */
export const ENGINE = 'messages'
const CHOICE = 0
/** Status that the worker would have answered with, had it not begun. */
const STATUS_OF_TYPE: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 502],
  ['timeout_error', 504],
  ['overloaded_error', 529],
])
const FIRST_RETRYABLE = 429
const MAX_SAID = 1_000

/** Kinds of blocks that have events; what others say only the worker and the client know. */
const TOLD: ReadonlySet<unknown> = new Set(['text', 'thinking', 'tool_use'])

interface OpenCall {
  readonly index: number
  hasInput: boolean
}

export class MessageAnswer {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  readonly #usage = new AnswerUsage()
  /** Calls that are being written, by the number of their block. */
  readonly #calls = new Map<unknown, OpenCall>()
  /** Of a request in the format's own words, whose next round wants them back; null for others. */
  readonly #native: NativeBlocks | null
  #hasStarted = false
  #callCount = 0
  /** Of the thinking block that is being written. */
  #signature = ''
  #reason: unknown = null
  #stopSequence: unknown = null

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#attempt = attempt
    this.#sink = sink
    this.#native = attempt.request.native?.engine === ENGINE ? new NativeBlocks() : null
  }

  /** Also for an answer whose beginning never comes: whatever it tells first begins it. */
  start(message: unknown): void {
    const { id, model, usage } = isObject(message) ? message : {}
    this.#usage.add(usage)
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#sink.emit({
      type: 'started',
      id: typeof id === 'string' ? id : null,
      model: typeof model === 'string' && model !== '' ? model : this.#attempt.model,
      createdAtSec: Math.floor(Date.now() / 1000),
      inputTokens: this.#usage.inputTokens,
      systemFingerprint: null,
      ...(this.#native !== null && { hasNativeTools: true }),
      worker: this.#attempt.worker,
    })
  }

  /** A block begins; of a whole answer it holds everything. */
  openBlock(index: unknown, block: unknown): void {
    if (!isObject(block)) return
    if (!this.#hasStarted) this.start(null)
    this.#native?.open(index, block)
    this.#signature = ''
    if (block.type === 'text') {
      this.#text(block.text)
      if (Array.isArray(block.citations)) for (const one of block.citations) this.#citation(one)
    } else if (block.type === 'thinking') {
      this.#thinking(block.thinking)
      if (isText(block.signature)) this.#signature = block.signature
    } else if (block.type === 'tool_use') this.#openCall(index, block)
  }

  #openCall(number: unknown, { id, name, input }: Json): void {
    if (typeof id !== 'string' || id === '' || typeof name !== 'string') return
    const call: OpenCall = { index: this.#callCount++, hasInput: false }
    this.#calls.set(number, call)
    this.#sink.emit({ type: 'tool_call', choice: CHOICE, index: call.index, id, name })
    if (isObject(input) && Object.keys(input).length > 0) this.#input(number, JSON.stringify(input))
  }

  addDelta(index: unknown, delta: unknown): void {
    if (!isObject(delta)) return
    if (!this.#hasStarted) this.start(null)
    this.#native?.add(index, delta)
    switch (delta.type) {
      case 'text_delta':
        this.#text(delta.text)
        return
      case 'thinking_delta':
        this.#thinking(delta.thinking)
        return
      case 'signature_delta':
        if (isText(delta.signature)) this.#signature += delta.signature
        return
      case 'citations_delta':
        this.#citation(delta.citation)
        return
      case 'input_json_delta':
        this.#input(index, delta.partial_json)
    }
  }

  #text(text: unknown): void {
    if (isText(text)) this.#sink.emit({ type: 'text', choice: CHOICE, delta: text })
  }

  #thinking(text: unknown): void {
    if (isText(text)) this.#sink.emit({ type: 'reasoning', choice: CHOICE, delta: text })
  }

  /** Formats of others have no such sources. */
  #citation(annotation: unknown): void {
    if (this.#native !== null && isObject(annotation))
      this.#sink.emit({ type: 'annotation', choice: CHOICE, annotation })
  }

  /** Nothing else is written inside of a block. */
  #sign(): void {
    const signature = this.#signature
    this.#signature = ''
    if (signature !== '') this.#sink.emit({ type: 'reasoning_signature', choice: CHOICE, signature })
  }

  #input(number: unknown, text: unknown): void {
    const call = this.#calls.get(number)
    if (call === undefined || !isText(text)) return
    call.hasInput = true
    this.#sink.emit({ type: 'tool_arguments', choice: CHOICE, index: call.index, delta: text })
  }

  closeBlock(index: unknown): void {
    this.#sign()
    const item = this.#native?.close(index)
    if (item !== undefined && !TOLD.has(item.type))
      this.#sink.emit({ type: 'native_item', choice: CHOICE, engine: ENGINE, item })
    const call = this.#calls.get(index)
    if (call === undefined) return
    // A call without input has an empty one, which other formats write out.
    if (!call.hasInput) this.#input(index, '{}')
    this.#calls.delete(index)
    this.#sink.emit({ type: 'tool_call_done', choice: CHOICE, index: call.index })
  }

  /** How it ended, and what it has cost so far. */
  addEnd(delta: unknown, usage: unknown): void {
    this.#usage.add(usage)
    if (!isObject(delta)) return
    if (delta.stop_reason != null) this.#reason = delta.stop_reason
    if (delta.stop_sequence != null) this.#stopSequence = delta.stop_sequence
  }

  finish(): void {
    if (!this.#hasStarted) this.start(null)
    const reason = this.#reason
    const content = this.#native?.content
    const matchedStop = typeof this.#stopSequence === 'string' ? this.#stopSequence : null
    this.#sink.emit({
      type: 'choice_done',
      choice: CHOICE,
      reason: toReason(reason, this.#callCount > 0),
      matchedStop,
      ...(content !== undefined && {
        native: { engine: ENGINE, content, reason: typeof reason === 'string' ? reason : null },
      }),
    })
    this.#sink.emit({ type: 'finished', usage: this.#usage.toUsage() })
  }
}

function toReason(reason: unknown, hasCalls: boolean): FinishReason {
  switch (reason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'refusal':
      return 'content_filter'
    case 'tool_use':
      return hasCalls ? 'tool_calls' : 'stop'
    default:
      return 'stop'
  }
}

/** @param error of an error event */
export function toStreamError(error: unknown): GatewayError {
  const { type, message } = isObject(error) ? error : {}
  const said = typeof message === 'string' ? message.slice(0, MAX_SAID) : 'it gave no reason'
  const status = STATUS_OF_TYPE.get(type)
  if (status === undefined) return answerErrors.worker_stream_failed(said)
  // What is wrong with the request is so for every worker.
  return status < FIRST_RETRYABLE
    ? answerErrors.worker_refused.with({ status }, said)
    : answerErrors.worker_stream_failed.with({ status }, said)
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
