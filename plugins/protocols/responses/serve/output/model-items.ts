/** Output items of the model: messages, reasoning, and calls of the client's functions. */
import { type HistoryItem, isObject, type NativeObject, type TokenLogprob, type ToolLoopEvent } from '#kernel'
import { newItemId, parseBoundedText } from '#shared'
import type { SealedText } from '../prompt/sealed-text.ts'
import { type StandIn, toInput } from '../read/stand-ins.ts'
import { type EventEncoder, ItemEncoder, type Part, type PartEncoder } from './event-encoder.ts'

/** Output options of the client. */
export interface OutputOptions {
  readonly hasLogprobs: boolean
  /** Reasoning is shown as a summary. */
  readonly hasSummary: boolean
  /** Encrypts reasoning for the client; null if the client does not request it. */
  readonly seal: ((text: SealedText) => string) | null
  readonly hasSources: boolean
  readonly hasCodeOutputs: boolean
  readonly hasSearchResults: boolean
  /** As of the declared tools. */
  readonly standIns: ReadonlyMap<string, StandIn>
}

/** An output item that has not ended. */
export interface OpenItem {
  begin(): void
  add(event: ToolLoopEvent): void
  end(event: ToolLoopEvent): HistoryItem
  /** The incomplete item, for a response that ended early. */
  incomplete(): HistoryItem
}

type EventOf<Type extends ToolLoopEvent['type']> = Extract<ToolLoopEvent, { type: Type }>

/** A part of a message that has not ended. */
class OpenPart {
  text = ''
  readonly kind: 'output_text' | 'refusal'
  readonly encoder: PartEncoder
  readonly annotations: unknown[] = []
  readonly logprobs: object[] = []
  /** Members that the worker added to the format. */
  members: NativeObject = {}

  constructor(kind: OpenPart['kind'], encoder: PartEncoder) {
    this.kind = kind
    this.encoder = encoder
  }

  value(): Part {
    const { kind, text, annotations, logprobs, members } = this
    return kind === 'refusal'
      ? { ...members, type: kind, refusal: text }
      : { ...members, type: kind, text, annotations, logprobs }
  }
}

export class MessageItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #hasLogprobs: boolean
  readonly #parts: Part[] = []
  #part: OpenPart | null = null
  #members: NativeObject

  constructor(
    { index, members = {} }: Pick<EventOf<'item_started'>, 'index' | 'members'>,
    events: EventEncoder | null,
    { hasLogprobs }: OutputOptions,
  ) {
    this.#encoder = new ItemEncoder(index, { id: newItemId('message'), type: 'message' }, events)
    this.#hasLogprobs = hasLogprobs
    this.#members = members
  }

  begin(): void {
    this.#encoder.added(this.#value('in_progress', []))
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'text') this.#text(event.delta, event.logprobs)
    else if (event.type === 'refusal') {
      const part = this.#open('refusal')
      part.text += event.delta
      part.encoder.delta(event.delta)
    } else if (event.type === 'annotation') {
      const { annotations, encoder } = this.#open('output_text')
      annotations.push(event.annotation)
      encoder.annotation(annotations.length - 1, event.annotation)
    } else if (event.type === 'part_done') this.#endPart(event.part)
    else if (event.type === 'native_event') this.#encoder.native(event.event)
  }

  /** @param part as the worker has it */
  #endPart(part: NativeObject): void {
    const { type } = part
    if (type === 'output_text' || type === 'refusal') {
      const { text: _, refusal: __, annotations: ___, logprobs: ____, ...members } = part
      this.#open(type).members = members
      this.#closePart()
    } else if (typeof type === 'string') {
      this.#closePart()
      this.#parts.push({ ...part, type })
    }
  }

  end(event: ToolLoopEvent): HistoryItem {
    if (this.#part === null && this.#parts.length === 0) this.#open('output_text')
    this.#closePart()
    const { isCut, members } = event as EventOf<'item_done'>
    this.#members = members ?? this.#members
    const item = this.#value(isCut ? 'incomplete' : 'completed', this.#parts)
    this.#encoder.done(item)
    return item
  }

  incomplete(): HistoryItem {
    const parts = this.#part === null ? this.#parts : [...this.#parts, this.#part.value()]
    return this.#value('incomplete', parts)
  }

  #text(delta: string, logprobs: readonly TokenLogprob[] | null): void {
    const part = this.#open('output_text')
    part.text += delta
    if (!this.#hasLogprobs || logprobs === null) {
      part.encoder.delta(delta)
      return
    }
    const entries = logprobs.map(toWireLogprob)
    for (const entry of entries) part.logprobs.push(entry)
    part.encoder.deltaWithLogprobs(delta, entries)
  }

  #open(kind: OpenPart['kind']): OpenPart {
    if (this.#part?.kind === kind) return this.#part
    this.#closePart()
    this.#part = new OpenPart(kind, this.#encoder.part(kind, this.#parts.length))
    this.#part.encoder.added(this.#part.value())
    return this.#part
  }

  #closePart(): void {
    const part = this.#part
    if (part === null) return
    this.#part = null
    const value = part.value()
    this.#parts.push(value)
    part.encoder.done(value)
  }

  #value(status: string, content: readonly Part[]): HistoryItem {
    return { ...this.#members, id: this.#encoder.id, type: 'message', status, role: 'assistant', content }
  }
}

function toWireLogprob({ token, logprob, bytes, top }: TokenLogprob): object {
  return {
    token,
    logprob,
    bytes: bytes ?? [],
    top_logprobs: top.map((one) => ({ ...one, bytes: one.bytes ?? [] })),
  }
}

type ReasoningKind = 'summary_text' | 'reasoning_text'

/** Text, a summary, or both if the worker distinguishes them. */
export class ReasoningItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #options: OutputOptions
  /** Parts that have ended. */
  readonly #parts: { readonly type: ReasoningKind; readonly text: string }[] = []
  #part: { readonly kind: ReasoningKind; readonly encoder: PartEncoder; text: string } | null = null
  #signature: string | undefined
  #members: NativeObject

  constructor(
    { index, members = {} }: Pick<EventOf<'item_started'>, 'index' | 'members'>,
    events: EventEncoder | null,
    options: OutputOptions,
  ) {
    this.#encoder = new ItemEncoder(index, { id: newItemId('reasoning'), type: 'reasoning' }, events)
    this.#options = options
    this.#members = members
  }

  begin(): void {
    const { id } = this.#encoder
    this.#encoder.added({ ...this.#members, id, type: 'reasoning', status: 'in_progress', summary: [] })
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'native_event') this.#encoder.native(event.event)
    if (event.type === 'reasoning_signature') this.#signature = (this.#signature ?? '') + event.signature
    if (event.type !== 'reasoning') return
    if (event.isBreak === true) this.#endPart()
    else {
      const isSummary = event.form === undefined ? this.#options.hasSummary : event.form === 'summary'
      this.#text(isSummary ? 'summary_text' : 'reasoning_text', event.delta)
    }
  }

  #text(kind: ReasoningKind, delta: string): void {
    if (this.#part?.kind !== kind) {
      this.#endPart()
      const encoder = this.#encoder.part(kind, this.#partsOf(kind).length)
      this.#part = { kind, encoder, text: '' }
      encoder.added({ type: kind, text: '' })
    }
    this.#part.text += delta
    this.#part.encoder.delta(delta)
  }

  #endPart(): void {
    if (this.#part === null) return
    const { kind: type, text, encoder } = this.#part
    encoder.done({ type, text })
    this.#parts.push({ type, text })
    this.#part = null
  }

  end(event: ToolLoopEvent): HistoryItem {
    this.#endPart()
    const { isCut, members } = event as EventOf<'item_done'>
    this.#members = members ?? this.#members
    const item = this.#value(isCut ? 'incomplete' : 'completed')
    this.#encoder.done(item)
    return item
  }

  incomplete(): HistoryItem {
    return this.#value('incomplete')
  }

  /** With the open one. */
  #partsOf(kind: ReasoningKind): { readonly type: ReasoningKind; readonly text: string }[] {
    const open = this.#part === null ? [] : [{ type: this.#part.kind, text: this.#part.text }]
    return [...this.#parts, ...open].filter(({ type }) => type === kind)
  }

  #value(status: string): HistoryItem {
    const { seal } = this.#options
    const content = this.#partsOf('reasoning_text')
    const summary = this.#partsOf('summary_text')
    const text = (content.length > 0 ? content : summary).map((part) => part.text).join('\n\n')
    return {
      ...this.#members,
      id: this.#encoder.id,
      type: 'reasoning',
      status,
      summary,
      ...(content.length > 0 && { content }),
      ...(seal !== null && { encrypted_content: seal({ text, signature: this.#signature }) }),
    }
  }
}

/** A call of one of the client's functions. */
export class FunctionItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #callId: string
  readonly #name: string
  readonly #namespace: string | null
  #arguments = ''
  #members: NativeObject

  constructor(
    { index, callId, name, members = {} }: EventOf<'function_started'>,
    events: EventEncoder | null,
    namespace: string | null,
  ) {
    this.#encoder = new ItemEncoder(index, { id: newItemId('function_call'), type: 'function_call' }, events)
    this.#callId = callId
    this.#name = name
    this.#namespace = namespace
    this.#members = members
  }

  begin(): void {
    this.#encoder.added(this.#value('in_progress', ''))
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'native_event') this.#encoder.native(event.event)
    if (event.type !== 'function_arguments') return
    this.#arguments += event.delta
    this.#encoder.argumentsDelta(event.delta)
  }

  end(event: ToolLoopEvent): HistoryItem {
    const { arguments: args, isCut, members } = event as EventOf<'function_done'>
    this.#members = members ?? this.#members
    this.#encoder.argumentsDone(args, this.#name)
    const item = this.#value(isCut ? 'incomplete' : 'completed', args)
    this.#encoder.done(item)
    return item
  }

  incomplete(): HistoryItem {
    return this.#value('incomplete', this.#arguments)
  }

  #value(status: string, args: string): HistoryItem {
    return {
      ...this.#members,
      id: this.#encoder.id,
      type: 'function_call',
      status,
      call_id: this.#callId,
      ...(this.#namespace !== null && { namespace: this.#namespace }),
      name: this.#name,
      arguments: args,
    }
  }
}

const CUSTOM_CALL = 'custom_tool_call'

/** A call of a custom tool by a worker that got a function for it. The input is known once the arguments are complete. */
export class CustomCallItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #callId: string
  readonly #name: string
  #arguments = ''

  constructor({ index, callId }: EventOf<'function_started'>, events: EventEncoder | null, name: string) {
    this.#encoder = new ItemEncoder(index, { id: newItemId(CUSTOM_CALL), type: CUSTOM_CALL }, events)
    this.#callId = callId
    this.#name = name
  }

  begin(): void {
    this.#encoder.added(this.#value('in_progress', ''))
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'function_arguments') this.#arguments += event.delta
  }

  end(event: ToolLoopEvent): HistoryItem {
    const { arguments: args, isCut } = event as EventOf<'function_done'>
    const item = this.#value(isCut ? 'incomplete' : 'completed', toInput(args))
    this.#encoder.wholeMember('input', item.input)
    this.#encoder.done(item)
    return item
  }

  incomplete(): HistoryItem {
    return this.#value('incomplete', toInput(this.#arguments))
  }

  #value(status: string, input: string): HistoryItem {
    const { id } = this.#encoder
    return { id, type: CUSTOM_CALL, status, call_id: this.#callId, name: this.#name, input }
  }
}

/** A search of the client for further tools. The format has no events for its arguments. */
class SearchCallItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #callId: string

  constructor({ index, callId }: EventOf<'function_started'>, events: EventEncoder | null) {
    this.#encoder = new ItemEncoder(index, { id: newItemId(SEARCH_CALL), type: SEARCH_CALL }, events)
    this.#callId = callId
  }

  begin(): void {
    this.#encoder.added(this.#value('in_progress', {}))
  }

  add(): void {}

  end(event: ToolLoopEvent): HistoryItem {
    const { arguments: args, isCut } = event as EventOf<'function_done'>
    const item = this.#value(isCut ? 'incomplete' : 'completed', readArguments(args))
    this.#encoder.done(item)
    return item
  }

  incomplete(): HistoryItem {
    return this.#value('incomplete', {})
  }

  #value(status: string, args: object): HistoryItem {
    const { id } = this.#encoder
    return { id, type: SEARCH_CALL, status, execution: 'client', call_id: this.#callId, arguments: args }
  }
}

const SEARCH_CALL = 'tool_search_call'

/** Empty for a text that is not a JSON object: models make mistakes. */
function readArguments(text: string): object {
  try {
    const value: unknown = parseBoundedText(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** A call of what the client declared: a function, or a tool that a function stands for. */
export function callItem(
  event: EventOf<'function_started'>,
  events: EventEncoder | null,
  { standIns }: OutputOptions,
): OpenItem {
  const standsFor = standIns.get(event.name)
  if (standsFor?.kind === 'custom') return new CustomCallItem(event, events, standsFor.name)
  if (standsFor?.kind === 'search') return new SearchCallItem(event, events)
  if (standsFor === undefined) return new FunctionItem(event, events, null)
  return new FunctionItem({ ...event, name: standsFor.name }, events, standsFor.namespace)
}
