/** Converts a worker's response, streamed or whole, into generation events. */
import {
  type EngineAttempt,
  type EngineSink,
  type FinishReason,
  type GenerationEvent,
  isObject,
  type JsonObject,
  type NativeObject,
  workerMessage,
} from '#kernel'
import {
  CUSTOM_CALL,
  customArguments,
  imageOfItem,
  LeftOut,
  memberName,
  readLogprobs,
  StopSearch,
} from '#shared'
import type { WorkerDelta } from '../worker-delta.ts'
import {
  isText,
  membersAtEnd,
  membersBeside,
  membersOfEvent,
  readUsage,
  textsOf,
  toAnswerError,
} from './answer-values.ts'
import { refusesEngineMembers } from './dialects.ts'
import { ITEMS, NO_ITEMS, RESPONSE } from './translated.ts'

const CHOICE = 0
/** Name of the adapter. */
export const ENGINE = 'responses'

/** Types of items that have events of a generation. */
export const KINDS: ReadonlyMap<unknown, OpenItem['kind']> = new Map([
  ['message', 'message'],
  ['reasoning', 'reasoning'],
  ['function_call', 'call'],
])
/** Events of one item, whatever members they lack. */
const ITEM_EVENT =
  /^response\.(?:content_part|custom_tool_call|function_call|output_item|output_text|reasoning|refusal)/

/** An item that has not ended. */
interface OpenItem {
  readonly kind: 'message' | 'reasoning' | 'call' | 'native' | 'hidden'
  /** Of a call, or of an item of another kind; -1 otherwise. */
  readonly number: number
  /** As it began. */
  readonly item: JsonObject
  /** Whether deltas were emitted, which the end must not repeat: of the open part of a message. */
  hasDelta: boolean
  /** Source of its reasoning: a worker may send both the text and a summary. */
  thoughts: 'text' | 'summary' | null
  /** Index of the part that the last delta belongs to. */
  part: number
  /** Number of annotations of the open part. */
  annotations: number
}

export class ResponseAnswer {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  /** The client speaks the format, so that it gets what other formats lack. */
  readonly #isNative: boolean
  readonly #hasCustomTools: boolean
  /** Names of the declared functions, from the first call in a namespace on. */
  #declared: ReadonlySet<string> | null = null
  /** By the worker's index; null once it has ended. */
  readonly #items = new Map<unknown, OpenItem | null>()
  /** Index of the worker's item ids, for events without an index. */
  readonly #places = new Map<string, unknown>()
  /** Index of the item that began last. */
  #last: unknown
  /** Complete items, for a request whose next round sends them back. */
  readonly #content: JsonObject[] = []
  #callCount = 0
  #nativeCount = 0
  #hasStarted = false
  /** Further members of the delta that is being read. */
  #members: NativeObject | undefined
  /** The delta that is being read, if it has the form of an earlier one. */
  #source: WorkerDelta | undefined
  /** Stop strings are found here, since the service refuses the member; null without any. */
  readonly #search: StopSearch | null
  /** A stop string ended the answer before the worker did. */
  isOver = false
  readonly #leftOut = new LeftOut()
  /** Of messages and reasoning, for clients of other formats; the last counts. */
  #extraContent: NativeObject | undefined

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#attempt = attempt
    this.#sink = sink
    this.#isNative = attempt.request.native?.engine === ENGINE
    this.#hasCustomTools = attempt.request.tools?.some(({ custom }) => custom !== undefined)
    const { stop } = attempt.request.sampling
    this.#search =
      stop !== undefined && refusesEngineMembers(attempt.worker) ? new StopSearch(stop, false) : null
  }

  start(response: unknown): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    const { id, model, created_at: createdAt, service_tier: tier } = isObject(response) ? response : {}
    this.#sink.emit({
      type: 'started',
      id: isText(id) ? id : null,
      model: isText(model) ? model : this.#attempt.model,
      createdAtSec:
        typeof createdAt === 'number' && createdAt > 0 ? createdAt : Math.floor(Date.now() / 1000),
      inputTokens: null,
      systemFingerprint: null,
      ...(isText(tier) && { serviceTier: tier }),
      worker: this.#attempt.worker,
    })
  }

  /** Starts the answer before its first event, whatever that is. */
  #emit(event: GenerationEvent): void {
    if (!this.#hasStarted) this.start(null)
    this.#sink.emit(event)
  }

  openItem(index: unknown, item: unknown): void {
    if (!isObject(item) || this.#items.has(index)) return
    this.#last = index
    if (isText(item.id)) this.#places.set(item.id, index)
    const kind = this.#kindOf(item.type)
    const number = kind === 'call' ? this.#callCount++ : kind === 'native' ? this.#nativeCount++ : -1
    this.#items.set(index, {
      kind,
      number,
      item,
      hasDelta: false,
      thoughts: null,
      part: 0,
      annotations: 0,
    })
    if (kind === 'call') {
      const id = isText(item.call_id) ? item.call_id : `call_${number}`
      const name = this.#nameOf(item)
      this.#emit({ type: 'tool_call', choice: CHOICE, index: number, id, name, ...this.#ofCall(item) })
    } else if (kind === 'native')
      this.#emit({ type: 'native_started', choice: CHOICE, number, engine: ENGINE, item })
    else if (kind !== 'hidden' && this.#isNative)
      this.#emit({
        type: 'item_started',
        choice: CHOICE,
        item: kind,
        members: membersBeside(kind, item),
      })
  }

  #kindOf(type: unknown): OpenItem['kind'] {
    if (typeof type !== 'string' || type.startsWith('_')) return 'hidden'
    if (type === CUSTOM_CALL && !this.#isNative && this.#hasCustomTools) return 'call'
    return KINDS.get(type) ?? 'native'
  }

  /** Of the declared function that stands for a member of a namespace, from which the client's format is written. */
  #nameOf({ namespace, name }: JsonObject): string {
    if (!isText(namespace)) return String(name)
    const member = memberName(namespace, String(name))
    this.#declared ??= new Set(this.#attempt.request.tools?.map((tool) => tool.function.name))
    return this.#declared.has(member) ? member : String(name)
  }

  #ofCall(
    item: JsonObject,
    membersOf = membersBeside,
  ): { members?: JsonObject; extraContent?: NativeObject } {
    if (this.#isNative) return { members: membersOf('call', item) }
    return isObject(item.extra_content) ? { extraContent: item.extra_content } : {}
  }

  /**
   * Index of the item of an event without an index: by its id, or else the one that began last. Items without an index are
   * numbered in order. Undefined for an event of the whole response.
   */
  placeOf({ type, item_id, item }: JsonObject): unknown {
    const id = isObject(item) ? item.id : item_id
    const place = isText(id) ? this.#places.get(id) : undefined
    if (place !== undefined) return place
    if (typeof type !== 'string' || !ITEM_EVENT.test(type)) return undefined
    const isNew = isText(id) || type === 'response.output_item.added' || !this.#items.get(this.#last)
    if (!isNew) return this.#last
    const next = this.#items.size
    if (isText(id)) this.#places.set(id, next)
    return next
  }

  /** True for an item whose events only the client knows. */
  isNative(index: unknown): boolean {
    const kind = this.#items.get(index)?.kind
    return kind === 'native' || kind === 'hidden'
  }

  /** Keeps the further members of a delta for clients that speak the format. */
  beginEvent(event: JsonObject): void {
    const members = membersOfEvent(event)
    this.#members = undefined
    this.#source = undefined
    if (members === undefined) return
    if (this.#isNative && event.delta !== undefined) this.#members = members
    // Padding is of no use in another format.
    else for (const name in members) if (name !== 'obfuscation') this.#leftOut.add(name)
  }

  /** @param members further ones of its form */
  beginDelta(delta: WorkerDelta, members: NativeObject | undefined): void {
    this.#members = members
    this.#source = delta
  }

  /** An event that the gateway does not know, of an item or of the whole response. */
  event(index: unknown, event: JsonObject): void {
    const open = this.#items.get(index)
    if (!this.#isNative && open?.kind !== 'native' && isText(event.type)) this.#leftOut.add(event.type)
    if (open === null || open?.kind === 'hidden' || (open === undefined && index !== undefined)) return
    this.#emit({
      type: 'native_event',
      choice: CHOICE,
      engine: ENGINE,
      of:
        open === undefined
          ? { kind: 'answer' }
          : open.kind === 'native' || open.kind === 'call'
            ? { kind: open.kind, number: open.number }
            : { kind: 'open' },
      event,
    })
  }

  text(index: unknown, delta: unknown, logprobs: unknown, part?: unknown): void {
    if (!isText(delta)) return
    this.#enterPart(index, part)
    const hasLogprobs = Array.isArray(logprobs) && logprobs.length > 0
    if (this.#search !== null) this.#searched(this.#search, delta)
    else
      this.#emit({
        type: 'text',
        choice: CHOICE,
        delta,
        logprobs: hasLogprobs ? readLogprobs(logprobs) : null,
        members: this.#members,
        source: this.#source,
      })
  }

  /** Text that was held back cannot be matched to its tokens. */
  #searched(search: StopSearch, text: string): void {
    this.#plainText(search.push(text))
    if (search.matched === null) return
    this.isOver = true
    this.#emit({ type: 'choice_done', choice: CHOICE, reason: 'stop', matchedStop: search.matched })
    this.#emit({ type: 'finished', usage: null })
    this.#sink.stop()
  }

  #plainText(delta: string): void {
    if (delta !== '') this.#emit({ type: 'text', choice: CHOICE, delta, logprobs: null })
  }

  refusal(index: unknown, delta: unknown, part?: unknown): void {
    if (!isText(delta)) return
    this.#enterPart(index, part)
    this.#emit({ type: 'refusal', choice: CHOICE, delta, members: this.#members, source: this.#source })
  }

  annotation(index: unknown, annotation: unknown): void {
    if (!isObject(annotation)) return
    const open = this.#items.get(index)
    if (open) open.annotations += 1
    this.#emit({ type: 'annotation', choice: CHOICE, annotation })
  }

  /** Some workers send deltas only. */
  #enterPart(index: unknown, part: unknown): void {
    if (!this.#items.has(index)) this.openItem(index, { type: 'message' })
    const open = this.#items.get(index)
    if (!open) return
    if (typeof part === 'number' && part > open.part) beginPart(open, part)
    open.hasDelta = true
  }

  /** A part of a message is complete; content without deltas is emitted first. */
  closePart(index: unknown, number: unknown, part: unknown): void {
    const open = this.#items.get(index)
    if (open?.kind !== 'message' || !isObject(part)) return
    const place = typeof number === 'number' ? number : open.part
    if (place < open.part) return
    if (place > open.part) beginPart(open, place)
    if (!open.hasDelta) {
      this.text(index, part.text, part.logprobs)
      this.refusal(index, part.refusal)
    }
    if (this.isOver) return
    this.#plainText(this.#search?.end() ?? '')
    const annotations: readonly unknown[] = Array.isArray(part.annotations) ? part.annotations : []
    for (const one of annotations.slice(open.annotations)) this.annotation(index, one)
    beginPart(open, place + 1)
    if (this.#isNative) this.#emit({ type: 'part_done', choice: CHOICE, part })
  }

  /** @param part index of the part within the item */
  reasoning(index: unknown, from: 'text' | 'summary', delta: unknown, part: unknown): void {
    if (!isText(delta)) return
    this.openItem(index, { type: 'reasoning' })
    const open = this.#items.get(index)
    // Other formats have one text of reasoning.
    if ((open?.thoughts ?? from) !== from && !this.#isNative) return
    if (open) {
      const place = typeof part === 'number' ? part : 0
      const isSame = open.thoughts === from || open.thoughts === null
      if (open.hasDelta && isSame && place !== open.part)
        this.#emit({ type: 'reasoning', choice: CHOICE, delta: '\n\n', isBreak: true })
      open.thoughts = from
      open.part = place
      open.hasDelta = true
    }
    this.#emit({
      type: 'reasoning',
      choice: CHOICE,
      delta,
      form: this.#isNative ? from : undefined,
      members: this.#members,
      source: this.#source,
    })
  }

  arguments(index: unknown, delta: unknown): void {
    const open = this.#items.get(index)
    if (open?.kind !== 'call' || !isText(delta)) return
    open.hasDelta = true
    this.#emit({
      type: 'tool_arguments',
      choice: CHOICE,
      index: open.number,
      delta,
      members: this.#members,
      source: this.#source,
    })
  }

  /** Emits content without deltas: some workers send whole items only. */
  closeItem(index: unknown, item: unknown): void {
    if (!isObject(item)) return
    this.openItem(index, item)
    const open = this.#items.get(index)
    if (!open) return
    if (!this.#isNative) this.#noteLeftOut(open, item)
    if (open.kind === 'message') this.#endMessage(index, open, item)
    else if (open.kind === 'reasoning') this.#endReasoning(index, open, item)
    else if (open.kind === 'call') {
      if (!open.hasDelta)
        this.arguments(index, item.type === CUSTOM_CALL ? customArguments(item.input) : item.arguments)
      this.#emit({
        type: 'tool_call_done',
        choice: CHOICE,
        index: open.number,
        ...this.#ofCall(item, membersAtEnd),
      })
    } else if (open.kind === 'native') this.#endNative(open, item)
    this.#items.set(index, null)
    if (this.#isNative && open.kind !== 'hidden') this.#content.push(item)
  }

  /** Of items that have no events of a generation, other clients get images. */
  #noteLeftOut({ kind }: OpenItem, item: JsonObject): void {
    const isNoted = kind !== 'native' || imageOfItem(item) !== null
    this.#leftOut.addFrom(isNoted ? item : { type: item.type }, isNoted ? ITEMS : NO_ITEMS, 'output')
  }

  #endMessage(index: unknown, open: OpenItem, item: JsonObject): void {
    const parts: readonly unknown[] = Array.isArray(item.content) ? item.content : []
    for (let number = open.part; number < parts.length && !this.isOver; number += 1)
      this.closePart(index, number, parts[number])
    if (!this.isOver) this.#endText('message', item)
  }

  #endReasoning(index: unknown, open: OpenItem, item: JsonObject): void {
    const { content, summary, encrypted_content: sealed } = item
    if (!open.hasDelta) {
      for (const [part, text] of textsOf(content).entries()) this.reasoning(index, 'text', text, part)
      for (const [part, text] of textsOf(summary).entries()) this.reasoning(index, 'summary', text, part)
    }
    if (isText(sealed)) this.#emit({ type: 'reasoning_signature', choice: CHOICE, signature: sealed })
    this.#endText('reasoning', item)
  }

  #endText(kind: 'message' | 'reasoning', item: JsonObject): void {
    if (!this.#isNative) {
      if (isObject(item.extra_content)) this.#extraContent = item.extra_content
    } else
      this.#emit({
        type: 'item_done',
        choice: CHOICE,
        members: membersAtEnd(kind, item),
      })
  }

  #endNative({ number }: OpenItem, item: JsonObject): void {
    this.#emit({ type: 'native_item', choice: CHOICE, number, engine: ENGINE, item })
  }

  /** @param response the final response; content without events is emitted first */
  finish(response: unknown): void {
    const whole = isObject(response) ? response : {}
    const { output, status, error, usage, incomplete_details: cut } = whole
    if (status === 'failed') {
      this.#sink.fail(toAnswerError(workerMessage(error)))
      return
    }
    this.start(response)
    const items: readonly unknown[] = Array.isArray(output) ? output : []
    for (const [index, item] of items.entries()) {
      this.closeItem(index, item)
      if (this.isOver) return
    }
    for (const open of this.#items.values()) if (open?.kind === 'native') this.#endNative(open, open.item)
    if (!this.#isNative) this.#leftOut.addFrom(whole, RESPONSE)
    this.#leftOut.report(this.#attempt.ctx)
    this.#emit({
      type: 'choice_done',
      choice: CHOICE,
      reason: this.#reason(status, cut),
      matchedStop: null,
      ...(this.#extraContent !== undefined && { extraContent: this.#extraContent }),
      ...(this.#isNative && {
        native: { engine: ENGINE, content: this.#content, reason: null, members: whole },
      }),
    })
    this.#emit({ type: 'finished', usage: readUsage(usage, whole.service_tier) })
  }

  #reason(status: unknown, cut: unknown): FinishReason {
    if (status === 'incomplete' && isObject(cut)) {
      if (cut.reason === 'max_output_tokens') return 'length'
      if (cut.reason === 'content_filter') return 'content_filter'
    }
    if (status !== 'completed') return 'abort'
    return this.#callCount > 0 ? 'tool_calls' : 'stop'
  }
}

function beginPart(open: OpenItem, part: number): void {
  open.part = part
  open.hasDelta = false
  open.annotations = 0
}
