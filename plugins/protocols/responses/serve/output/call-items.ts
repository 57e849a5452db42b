/** Output items of the model: calls of what the client declared. */
import type { HistoryItem, NativeObject, ToolLoopEvent } from '#kernel'
import { newItemId, parseCallArguments } from '#shared'
import { toInput } from '../read/stand-ins.ts'
import { type EventEncoder, ItemEncoder } from './event-encoder.ts'
import type { EventOf, OpenItem, OutputOptions } from './model-items.ts'

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
    const item = this.#value(isCut ? 'incomplete' : 'completed', parseCallArguments(args))
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
