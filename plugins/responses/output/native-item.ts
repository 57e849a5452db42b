/** An item of a kind that only the worker and the client know: shown whole, under an id of our own. @source responses facts 2.3 */
import type { HistoryItem, ToolLoopEvent } from '#kernel'
import { newItemId } from '../item-ids.ts'
import type { Frames } from './frames.ts'
import { ItemFrames, type OpenItem } from './open-items.ts'
import { withoutPrivate } from './tool-items.ts'

export class NativeItem implements OpenItem {
  readonly #frames: ItemFrames
  readonly #item: HistoryItem

  constructor({ index, item }: Extract<ToolLoopEvent, { type: 'native_item' }>, frames: Frames | null) {
    const type = String(item.type)
    const id = newItemId(type)
    this.#frames = new ItemFrames(index, id, frames)
    // The worker's own id is for the worker alone, when the item goes back to it.
    this.#item = {
      ...withoutPrivate(item as HistoryItem),
      id,
      type,
      ...(typeof item.id === 'string' && { _workerId: item.id }),
    }
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
