/** Converts the events of a worker's message to events of a generation. */
import {
  breakdownOf,
  type EngineAttempt,
  type EngineSink,
  type FinishReason,
  type GatewayError,
  type GenerationUsage,
  isObject,
  largestBreakdown,
  type NativeObject,
  type UsageBreakdown,
  type WorkerMessage,
} from '#kernel'
import { LeftOut, streamFailure, tokenCount, type Unchecked } from '#shared'
import type { MessageResponse, WireUsage } from '../wire.ts'
import { NativeBlock } from './native-block.ts'
import { FOREIGN, type MessageTranslation, NATIVE } from './translated.ts'

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

/** Kinds of blocks that have events; others are passed on as native items. */
const KNOWN_KINDS: ReadonlySet<unknown> = new Set(['text', 'thinking', 'tool_use'])

interface OpenBlock {
  /** Index of its call; null for other blocks. */
  call: number | null
  hasInput: boolean
  /** For a native request, whose next round sends it back; null for other requests. */
  readonly native: NativeBlock | null
  /** Number of its native item; null for a block that has other events. */
  readonly number: number | null
}

export class MessageAnswer {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  readonly #usage = new AnswerUsage()
  /** Open blocks, by their index. */
  readonly #open = new Map<unknown, OpenBlock>()
  readonly #isNative: boolean
  readonly #leftOut = new LeftOut()
  readonly #translation: MessageTranslation
  /** Complete blocks of a native request. */
  readonly #content: NativeObject[] = []
  #hasStarted = false
  #callCount = 0
  #nativeCount = 0
  /** Of the open thinking block. */
  #signature = ''
  /** About text and thinking. */
  #extraContent: NativeObject | undefined
  /** Of the message and of its last event, which no other event has. */
  #members: NativeObject = {}
  /** Of the delta in the last event. */
  #deltaMembers: NativeObject = {}
  #reason: unknown = null
  #stopSequence: unknown = null

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#attempt = attempt
    this.#sink = sink
    this.#isNative = attempt.request.native?.engine === ENGINE
    this.#translation = this.#isNative ? NATIVE : FOREIGN
  }

  /** Called for the first event of any kind, since some answers lack `message_start`. */
  start(message: unknown): void {
    const { id, model, usage }: Unchecked<MessageResponse> = isObject(message) ? message : {}
    this.#usage.add(usage)
    if (this.#hasStarted) return
    this.#hasStarted = true
    if (isObject(message)) this.#members = withoutRead(message)
    this.#sink.emit({
      type: 'started',
      id: typeof id === 'string' ? id : null,
      model: typeof model === 'string' && model !== '' ? model : this.#attempt.model,
      createdAtSec: Math.floor(Date.now() / 1000),
      inputTokens: this.#usage.inputTokens,
      systemFingerprint: null,
      ...(this.#isNative && { hasNativeTools: true }),
      worker: this.#attempt.worker,
    })
  }

  /** @param block complete if the answer is not streamed */
  openBlock(index: unknown, block: unknown): void {
    if (!isObject(block)) return
    if (!this.#hasStarted) this.start(null)
    this.#signature = ''
    const isItem = this.#isNative && !KNOWN_KINDS.has(block.type)
    const number = isItem ? this.#nativeCount++ : null
    const native = this.#isNative ? new NativeBlock(block) : null
    const open: OpenBlock = { call: null, hasInput: false, native, number }
    this.#open.set(index, open)
    if (number !== null)
      this.#sink.emit({ type: 'native_started', choice: CHOICE, number, engine: ENGINE, item: block })
    if (isObject(block.extra_content) && (block.type === 'text' || block.type === 'thinking'))
      this.#extraContent = block.extra_content
    if (block.type === 'text') {
      this.#text(block.text)
      if (Array.isArray(block.citations)) for (const one of block.citations) this.#citation(one)
    } else if (block.type === 'thinking') {
      this.#thinking(block.thinking)
      if (isText(block.signature)) this.#signature = block.signature
    } else if (block.type === 'tool_use') this.#openCall(open, block)
  }

  #openCall(open: OpenBlock, block: Record<string, unknown>): void {
    const { type: _, id, name, input, extra_content: extraContent, ...members } = block
    if (typeof id !== 'string' || id === '' || typeof name !== 'string') return
    open.call = this.#callCount++
    this.#sink.emit({
      type: 'tool_call',
      choice: CHOICE,
      index: open.call,
      id,
      name,
      ...(this.#isNative && { members }),
      ...(isObject(extraContent) && { extraContent }),
    })
    if (isObject(input) && Object.keys(input).length > 0) this.#input(open, JSON.stringify(input))
  }

  addDelta(index: unknown, delta: unknown): void {
    if (!isObject(delta)) return
    if (!this.#hasStarted) this.start(null)
    const open = this.#open.get(index)
    open?.native?.add(delta)
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
        if (open !== undefined) this.#input(open, delta.partial_json)
    }
  }

  #text(text: unknown): void {
    if (isText(text)) this.#sink.emit({ type: 'text', choice: CHOICE, delta: text })
  }

  #thinking(text: unknown): void {
    if (isText(text)) this.#sink.emit({ type: 'reasoning', choice: CHOICE, delta: text })
  }

  /** Other formats have no citations of this shape. */
  #citation(annotation: unknown): void {
    if (this.#isNative && isObject(annotation))
      this.#sink.emit({ type: 'annotation', choice: CHOICE, annotation, engine: ENGINE })
  }

  #sign(): void {
    const signature = this.#signature
    this.#signature = ''
    if (signature !== '') this.#sink.emit({ type: 'reasoning_signature', choice: CHOICE, signature })
  }

  #input(open: OpenBlock, text: unknown): void {
    if (open.call === null || !isText(text)) return
    open.hasInput = true
    this.#sink.emit({ type: 'tool_arguments', choice: CHOICE, index: open.call, delta: text })
  }

  closeBlock(index: unknown): void {
    this.#sign()
    const open = this.#open.get(index)
    if (open === undefined) return
    this.#open.delete(index)
    const { call, native, number } = open
    const item = native?.complete()
    if (item !== undefined) this.#content.push(item)
    if (item !== undefined && number !== null)
      this.#sink.emit({ type: 'native_item', choice: CHOICE, number, engine: ENGINE, item })
    if (call === null) return
    // Other formats write out an empty input.
    if (!open.hasInput) this.#input(open, '{}')
    this.#sink.emit({ type: 'tool_call_done', choice: CHOICE, index: call })
  }

  noteEvent(event: NativeObject): void {
    // Deltas of a block that passes as it is are part of it.
    if (this.#open.get(event.index)?.number == null) this.#leftOut.addFrom(event, this.#translation.events)
  }

  noteMessage(message: NativeObject): void {
    // Other members pass to clients of the format.
    this.#leftOut.addFrom(this.#isNative ? { content: message.content } : message, this.#translation.message)
  }

  /** @param event with the counts so far */
  addEnd({ delta, usage, ...members }: NativeObject): void {
    this.#usage.add(usage)
    this.#members = { ...this.#members, ...withoutRead(members) }
    if (!isObject(delta)) return
    this.#deltaMembers = withoutRead(delta)
    if (delta.stop_reason != null) this.#reason = delta.stop_reason
    if (delta.stop_sequence != null) this.#stopSequence = delta.stop_sequence
  }

  finish(): void {
    if (!this.#hasStarted) this.start(null)
    this.#leftOut.report(this.#attempt.ctx)
    const reason = this.#reason
    const matchedStop = typeof this.#stopSequence === 'string' ? this.#stopSequence : null
    this.#sink.emit({
      type: 'choice_done',
      choice: CHOICE,
      reason: toReason(reason, this.#callCount > 0),
      matchedStop,
      ...(this.#extraContent !== undefined && { extraContent: this.#extraContent }),
      ...(this.#isNative && {
        native: {
          engine: ENGINE,
          content: this.#content.filter(isKept),
          reason: typeof reason === 'string' ? reason : null,
          members: { event: this.#members, delta: this.#deltaMembers },
        },
      }),
    })
    this.#sink.emit({ type: 'finished', usage: this.#usage.toUsage() })
  }
}

const READ_MEMBERS: ReadonlySet<string> = new Set([
  'id',
  'type',
  'role',
  'model',
  'content',
  'stop_reason',
  'stop_sequence',
  'usage',
])

/** Members that the gateway does not read. */
function withoutRead(members: NativeObject): NativeObject {
  return Object.fromEntries(
    Object.entries(members).filter(([name, value]) => value != null && !READ_MEMBERS.has(name)),
  )
}

/** False for an empty text, which services refuse, unless it holds data of the worker. */
function isKept({ type, text, extra_content: data }: NativeObject): boolean {
  return type !== 'text' || text !== '' || data != null
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
export function toStreamError({ type, text }: WorkerMessage): GatewayError {
  return streamFailure(text, STATUS_OF_TYPE.get(type))
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Sums up the usage that a worker reports in one place or several: later counts replace earlier ones. */
class AnswerUsage {
  #isReported = false
  #input = 0
  #cached = 0
  #written = 0
  #output = 0
  #thinking = 0
  #breakdown: UsageBreakdown | undefined

  add(usage: unknown): void {
    if (!isObject(usage)) return
    const reported: Unchecked<WireUsage> = usage
    this.#isReported = true
    this.#input = tokenCount(reported.input_tokens, this.#input)
    this.#cached = tokenCount(reported.cache_read_input_tokens, this.#cached)
    this.#written = tokenCount(reported.cache_creation_input_tokens, this.#written)
    this.#output = tokenCount(reported.output_tokens, this.#output)
    this.#breakdown = largestBreakdown(this.#breakdown, breakdownOf(usage))
    const { output_tokens_details: details } = reported
    if (isObject(details)) this.#thinking = tokenCount(details.thinking_tokens, this.#thinking)
  }

  /** Tokens of the whole prompt, caches included; null if no usage was reported. */
  get inputTokens(): number | null {
    return this.#isReported ? this.#input + this.#cached + this.#written : null
  }

  toUsage(): GenerationUsage | null {
    const { inputTokens } = this
    if (inputTokens === null) return null
    return {
      inputTokens,
      cachedTokens: this.#cached,
      cacheWriteTokens: this.#written,
      outputTokens: this.#output,
      reasoningTokens: this.#thinking,
      breakdown: this.#breakdown,
    }
  }
}
