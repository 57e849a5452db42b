/**
 * The output of one response: loop events become items, and frames where somebody follows. The items of the stream, of the
 * reply and of the store are the same objects.
 */
import type { HistoryItem, ToolLoopEvent } from '#kernel'
import { newItemId } from '../item-ids.ts'
import type { Frames } from './frames.ts'
import { FunctionItem } from './function-item.ts'
import { MessageItem } from './message-item.ts'
import { NativeItem } from './native-item.ts'
import type { OpenItem } from './open-item.ts'
import type { OutputWishes } from './output-wishes.ts'
import { ReasoningItem } from './reasoning-item.ts'
import { ApprovalItem, BuiltInItem, ListItem, McpCallItem } from './tool-items.ts'

export class OutputItems {
  readonly #frames: Frames | null
  readonly #wishes: OutputWishes
  readonly #open = new Map<number, OpenItem>()
  /** By index; an item that has not ended leaves a gap. */
  readonly #done: (HistoryItem | undefined)[] = []
  /** Calls that clients must not see, at the place where they happened. */
  readonly #hidden: { readonly before: number; readonly item: HistoryItem }[] = []
  #onDone: (() => void) | null = null

  /** @param frames null when nobody follows the stream */
  constructor(frames: Frames | null, wishes: OutputWishes) {
    this.#frames = frames
    this.#wishes = wishes
  }

  /** Called after each item that ended. */
  onItemDone(listener: () => void): void {
    this.#onDone = listener
  }

  /** Everything but `started`, `finished` and `failed`. */
  add(event: ToolLoopEvent): void {
    switch (event.type) {
      case 'text':
      case 'reasoning':
      case 'refusal':
      case 'annotation':
      case 'reasoning_signature':
      case 'function_arguments':
      case 'call_arguments':
      case 'call_arguments_done':
      case 'call_running':
        this.#open.get(event.index)?.add(event)
        return
      case 'item_started':
        this.#begin(
          event.index,
          event.item === 'message'
            ? new MessageItem(event.index, this.#frames, this.#wishes)
            : new ReasoningItem(event.index, this.#frames, this.#wishes),
        )
        return
      case 'function_started':
        this.#begin(event.index, new FunctionItem(event, this.#frames))
        return
      case 'list_started':
        this.#begin(event.index, new ListItem(event, this.#frames))
        return
      case 'call_started':
        this.#begin(
          event.index,
          event.tool.kind === 'mcp'
            ? new McpCallItem(event.index, event.tool, event.approvalId, this.#frames)
            : new BuiltInItem(event.index, event.tool.type, this.#frames, this.#wishes),
        )
        return
      case 'approval_requested':
        this.#begin(event.index, new ApprovalItem(event, this.#frames))
        this.#end(event.index, event)
        return
      case 'native_item':
        this.#begin(event.index, NativeItem.of(event, this.#frames))
        this.#end(event.index, event)
        return
      case 'item_done':
      case 'function_done':
      case 'list_done':
      case 'list_failed':
      case 'call_done':
        this.#end(event.index, event)
        return
      case 'hidden_call':
        if (event.tool.kind === 'mcp') this.#hide(event, event.tool.label, event.tool.name)
    }
  }

  /** An item that is whole from the beginning. */
  addWhole(index: number, item: HistoryItem): void {
    const whole = new NativeItem(index, item, this.#frames)
    whole.begin()
    this.#done[index] = whole.end()
    this.#onDone?.()
  }

  /** Items that have ended, in order; of those under way what there is of them, as incomplete. */
  items(): HistoryItem[] {
    const all: HistoryItem[] = []
    const count = this.#count
    for (let index = 0; index < count; index += 1) {
      const item = this.#done[index] ?? this.#open.get(index)?.asFarAsItCame()
      if (item !== undefined) all.push(item)
    }
    return all
  }

  /** As they are stored: what clients must not see stands between the others. */
  storedItems(): HistoryItem[] {
    const all = this.items()
    if (this.#hidden.length === 0) return all
    const stored: HistoryItem[] = []
    for (let index = 0; index <= all.length; index += 1) {
      for (const { before, item } of this.#hidden) if (before === index) stored.push(item)
      if (index < all.length) stored.push(all[index])
    }
    return stored
  }

  get #count(): number {
    let count = this.#done.length
    for (const index of this.#open.keys()) count = Math.max(count, index + 1)
    return count
  }

  #begin(index: number, item: OpenItem): void {
    this.#open.set(index, item)
    item.begin()
  }

  #end(index: number, event: ToolLoopEvent): void {
    const item = this.#open.get(index)
    if (item === undefined) return
    this.#open.delete(index)
    this.#done[index] = item.end(event)
    this.#onDone?.()
  }

  #hide(event: Extract<ToolLoopEvent, { type: 'hidden_call' }>, label: string, name: string): void {
    this.#hidden.push({
      before: this.#count,
      item: {
        id: newItemId('mcp_call'),
        type: '_hidden_call',
        server_label: label,
        name,
        arguments: event.arguments,
        _modelText: event.modelText,
      },
    })
  }
}
