/** Output items of the model: calls of what the client declared, which is a function or a tool that a function stands for. */
import type { GenerationEvent, HistoryItem, NativeObject } from '#kernel'
import { CUSTOM_CALL, customInput, parseCallArguments } from '#shared'
import type { StandIn } from '../read/stand-ins.ts'
import type { EventEncoder } from './event-encoder.ts'
import { OpenItem, type OutputOptions, type TextEnd } from './open-item.ts'

const TYPE_OF_KIND = {
  function: 'function_call',
  member: 'function_call',
  custom: CUSTOM_CALL,
  search: 'tool_search_call',
} as const

interface Called {
  readonly index: number
  readonly callId: string
  readonly name: string
  readonly members: NativeObject | undefined
}

/**
 * The input of a custom tool is known once the arguments are complete, and the format has no events for the arguments of a
 * search: only functions have deltas.
 */
export class CallItem extends OpenItem {
  readonly #callId: string
  readonly #standsFor:
    | StandIn
    | { readonly kind: 'function'; readonly namespace: null; readonly name: string }
  readonly #isFunction: boolean
  #arguments = ''

  constructor(
    { index, callId, name, members }: Called,
    events: EventEncoder | null,
    { standIns }: OutputOptions,
  ) {
    const standsFor = standIns.get(name) ?? { kind: 'function', namespace: null, name }
    super(index, TYPE_OF_KIND[standsFor.kind], events, members)
    this.#standsFor = standsFor
    this.#isFunction = this.encoder.type === 'function_call'
    this.#callId = callId
  }

  begin(): void {
    this.encoder.added(this.#value('in_progress', ''))
  }

  override add(event: GenerationEvent): void {
    if (this.#isFunction) super.add(event)
    if (event.type !== 'tool_arguments') return
    this.#arguments += event.delta
    if (this.#isFunction) this.encoder.argumentsDelta(event)
  }

  end(end: TextEnd): HistoryItem {
    const args = this.#arguments
    const item = this.#value(this.statusAt(end), args)
    if (this.#isFunction) this.encoder.argumentsDone(args, String(item.name))
    else if (item.type === CUSTOM_CALL) this.encoder.wholeMember('input', item.input)
    return this.done(item)
  }

  incomplete(): HistoryItem {
    // Arguments of a search are JSON, which is not whole.
    return this.#value('incomplete', this.#standsFor.kind === 'search' ? '' : this.#arguments)
  }

  #value(status: string, args: string): HistoryItem {
    const { id, type } = this.encoder
    const call = this.#standsFor
    const head = { id, type, status }
    if (call.kind === 'search')
      return { ...head, execution: 'client', call_id: this.#callId, arguments: parseCallArguments(args) }
    return {
      ...(this.#isFunction && this.members),
      ...head,
      call_id: this.#callId,
      ...(call.namespace !== null && { namespace: call.namespace }),
      name: call.name,
      ...(this.#isFunction ? { arguments: args } : { input: customInput(args) }),
    }
  }
}
