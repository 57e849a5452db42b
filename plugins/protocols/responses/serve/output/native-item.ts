/** Output items that the gateway passes on: of types that only the worker and the client know, or its own whole items. */
import type { HistoryItem, NativeObject, ToolLoopEvent } from '#kernel'
import { newItemId, withoutPrivate } from '#shared'
import { type EventEncoder, ItemEncoder } from './event-encoder.ts'
import type { OpenItem } from './model-items.ts'

const CUSTOM_CALL = 'custom_tool_call'

/** An item in the worker's format, with a new id. The worker's id is stored, for requests that send the item back to it. */
export class NativeItem implements OpenItem {
  readonly #encoder: ItemEncoder
  readonly #type: string
  #item: NativeObject
  #hasEvents = false

  constructor(
    { index, item }: { readonly index: number; readonly item: NativeObject },
    events: EventEncoder | null,
  ) {
    this.#type = String(item.type)
    this.#encoder = new ItemEncoder(index, { id: newItemId(this.#type), type: this.#type }, events)
    this.#item = item
  }

  /** Some workers send only complete items. */
  begin(): void {
    this.#encoder.added({
      ...withoutPrivate(this.incomplete()),
      ...(this.#item.status === 'completed' && { status: 'in_progress' }),
      ...(this.#type === CUSTOM_CALL && { input: '' }),
    })
  }

  add(event: ToolLoopEvent): void {
    if (event.type !== 'native_event') return
    this.#hasEvents = true
    this.#encoder.native(event.event)
  }

  end(event: ToolLoopEvent): HistoryItem {
    if (event.type === 'native_item') this.#item = event.item
    const { input } = this.#item
    if (this.#type === CUSTOM_CALL && !this.#hasEvents) this.#encoder.wholeMember('input', input ?? '')
    const item = this.incomplete()
    this.#encoder.done(withoutPrivate(item))
    return item
  }

  incomplete(): HistoryItem {
    const { id } = this.#item
    return {
      ...withoutPrivate(this.#item as HistoryItem),
      id: this.#encoder.id,
      type: this.#type,
      ...(typeof id === 'string' && { _workerId: id }),
    }
  }
}

/** Sends an item that is whole from its beginning. */
export function sendWholeItem(index: number, item: HistoryItem, events: EventEncoder | null): void {
  const encoder = new ItemEncoder(index, item, events)
  const { status } = item
  encoder.added({ ...withoutPrivate(item), ...(status !== undefined && { status: 'in_progress' }) })
  encoder.done(withoutPrivate(item))
}
