/** Output items of the model: messages, reasoning, calls of the client's functions, and native items. */
import { type HistoryItem, isObject, type TokenLogprob, type ToolLoopEvent } from '#kernel'
import { newItemId, parseBoundedText, withoutPrivate } from '#shared'
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

/** A part of a message that has not ended. */
class OpenPart {
  text = ''
  readonly kind: 'output_text' | 'refusal'
  readonly encoder: PartEncoder
  readonly annotations: unknown[] = []
  readonly logprobs: object[] = []

  constructor(kind: OpenPart['kind'], encoder: PartEncoder) {
    this.kind = kind
    this.encoder = encoder
  }

  value(): Part {
    const { kind, text, annotations, logprobs } = this
    return kind === 'refusal' ? { type: kind, refusal: text } : { type: kind, text, annotations, logprobs }
  }
}

export class MessageItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #hasLogprobs: boolean
  readonly #parts: Part[] = []
  #part: OpenPart | null = null

  constructor(index: number, events: EventEncoder | null, { hasLogprobs }: OutputOptions) {
    this.#encoder = new ItemEncoder(index, { id: newItemId('message'), type: 'message' }, events)
    this.#hasLogprobs = hasLogprobs
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
    }
  }

  end(event: ToolLoopEvent): HistoryItem {
    if (this.#part === null && this.#parts.length === 0) this.#open('output_text')
    this.#closePart()
    const isCut = event.type === 'item_done' && event.isCut
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
    return { id: this.#encoder.id, type: 'message', status, role: 'assistant', content }
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

/** Shown as text or as a summary. */
export class ReasoningItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #options: OutputOptions
  readonly #kind: 'summary_text' | 'reasoning_text'
  /** Parts that have ended, and the text of the open one. */
  readonly #texts: string[] = []
  #part: PartEncoder | null = null
  #text = ''
  #signature: string | undefined

  constructor(index: number, events: EventEncoder | null, options: OutputOptions) {
    this.#encoder = new ItemEncoder(index, { id: newItemId('reasoning'), type: 'reasoning' }, events)
    this.#options = options
    this.#kind = options.hasSummary ? 'summary_text' : 'reasoning_text'
  }

  begin(): void {
    this.#encoder.added({ id: this.#encoder.id, type: 'reasoning', status: 'in_progress', summary: [] })
  }

  add(event: ToolLoopEvent): void {
    if (event.type === 'reasoning_signature') this.#signature = (this.#signature ?? '') + event.signature
    if (event.type !== 'reasoning') return
    if (event.isBreak === true) {
      this.#endPart()
      return
    }
    if (this.#part === null) {
      this.#part = this.#encoder.part(this.#kind, this.#texts.length)
      this.#part.added({ type: this.#kind, text: '' })
    }
    this.#text += event.delta
    this.#part.delta(event.delta)
  }

  #endPart(): void {
    if (this.#part === null) return
    this.#part.done({ type: this.#kind, text: this.#text })
    this.#texts.push(this.#text)
    this.#part = null
    this.#text = ''
  }

  end(event: ToolLoopEvent): HistoryItem {
    this.#endPart()
    const item = this.#value(event.type === 'item_done' && event.isCut ? 'incomplete' : 'completed')
    this.#encoder.done(item)
    return item
  }

  incomplete(): HistoryItem {
    return this.#value('incomplete')
  }

  #value(status: string): HistoryItem {
    const { seal, hasSummary } = this.#options
    const texts = this.#text === '' ? this.#texts : [...this.#texts, this.#text]
    const parts = texts.map((text) => ({ type: this.#kind, text }))
    const text = texts.join('\n\n')
    return {
      id: this.#encoder.id,
      type: 'reasoning',
      status,
      summary: hasSummary ? parts : [],
      ...(!hasSummary && text !== '' && { content: parts }),
      ...(seal !== null && { encrypted_content: seal({ text, signature: this.#signature }) }),
    }
  }
}

type EventOf<Type extends ToolLoopEvent['type']> = Extract<ToolLoopEvent, { type: Type }>

/** A call of one of the client's functions. */
export class FunctionItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #callId: string
  readonly #name: string
  readonly #namespace: string | null
  #arguments = ''

  constructor(
    { index, callId, name }: EventOf<'function_started'>,
    events: EventEncoder | null,
    namespace: string | null,
  ) {
    this.#encoder = new ItemEncoder(index, { id: newItemId('function_call'), type: 'function_call' }, events)
    this.#callId = callId
    this.#name = name
    this.#namespace = namespace
  }

  begin(): void {
    this.#encoder.added(this.#value('in_progress', ''))
  }

  add(event: ToolLoopEvent): void {
    if (event.type !== 'function_arguments') return
    this.#arguments += event.delta
    this.#encoder.argumentsDelta(event.delta)
  }

  end(event: ToolLoopEvent): HistoryItem {
    const { arguments: args, isCut } = event as EventOf<'function_done'>
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
  readonly #namespace: string | null
  #arguments = ''

  constructor(
    { index, callId, name }: EventOf<'function_started'>,
    events: EventEncoder | null,
    namespace: string | null,
  ) {
    this.#namespace = namespace
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
    return {
      id,
      type: CUSTOM_CALL,
      status,
      call_id: this.#callId,
      ...(this.#namespace !== null && { namespace: this.#namespace }),
      name: this.#name,
      input,
    }
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
  if (standsFor === undefined) return new FunctionItem(event, events, null)
  if (standsFor.kind === 'search') return new SearchCallItem(event, events)
  const CallItem = standsFor.kind === 'custom' ? CustomCallItem : FunctionItem
  return new CallItem({ ...event, name: standsFor.name }, events, standsFor.namespace)
}

/** An item that is whole from its beginning, such as one of a type that only the worker and the client know. */
export class WholeItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #item: HistoryItem

  constructor(index: number, item: HistoryItem, events: EventEncoder | null) {
    this.#encoder = new ItemEncoder(index, item, events)
    this.#item = item
  }

  /** With a new id; the worker's id is stored, for requests that send the item back to it. */
  static ofWorker({ index, item }: EventOf<'native_item'>, events: EventEncoder | null): WholeItem {
    const type = String(item.type)
    const whole = {
      ...withoutPrivate(item as HistoryItem),
      id: newItemId(type),
      type,
      ...(typeof item.id === 'string' && { _workerId: item.id }),
    }
    return new WholeItem(index, whole, events)
  }

  begin(): void {
    const { type, status, input } = this.#item
    this.#encoder.added({
      ...withoutPrivate(this.#item),
      ...(status !== undefined && { status: 'in_progress' }),
      ...(type === CUSTOM_CALL && { input: '' }),
    })
    if (type === CUSTOM_CALL) this.#encoder.wholeMember('input', input ?? '')
  }

  add(): void {}

  end(): HistoryItem {
    this.#encoder.done(withoutPrivate(this.#item))
    return this.#item
  }

  incomplete(): HistoryItem {
    return this.#item
  }
}
