/** An item of a kind that only the worker and the client know: shown whole, under an id of our own. */
import type { HistoryItem, ToolLoopEvent } from '#kernel'
import { withoutPrivate } from '#shared'
import { newItemId } from '../item-ids.ts'
import type { Frames } from './frames.ts'
import { ItemFrames } from './item-frames.ts'
import type { OpenItem } from './open-item.ts'

export class NativeItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #item: HistoryItem

  /** @param item whole, and of our own making */
  constructor(index: number, item: HistoryItem, frames: Frames | null) {
    this.#frames = new ItemFrames(index, item.id, frames)
    this.#item = item
  }

  /** The worker's own id is for the worker alone, when the item goes back to it. */
  static of(
    { index, item }: Extract<ToolLoopEvent, { type: 'native_item' }>,
    frames: Frames | null,
  ): NativeItem {
    const type = String(item.type)
    const known = withoutPrivate(item as HistoryItem)
    const whole = {
      ...known,
      id: newItemId(type),
      type,
      ...(typeof item.id === 'string' && { _workerId: item.id }),
    }
    return new NativeItem(index, whole, frames)
  }

  begin(): void {
    const { type, status } = this.#item
    this.#frames.item('added', {
      ...withoutPrivate(this.#item),
      ...(status !== undefined && { status: 'in_progress' }),
      ...(type === 'custom_tool_call' && { input: '' }),
    })
    if (type !== 'custom_tool_call' || !this.#frames.isFollowed) return
    const input = JSON.stringify(this.#item.input ?? '')
    if (input !== '""') this.#frames.send('response.custom_tool_call_input.delta', `"delta":${input}`)
    this.#frames.send('response.custom_tool_call_input.done', `"input":${input}`)
  }

  add(): void {}

  end(): HistoryItem {
    this.#frames.item('done', withoutPrivate(this.#item))
    return this.#item
  }

  asFarAsItCame(): HistoryItem {
    return this.#item
  }
}
