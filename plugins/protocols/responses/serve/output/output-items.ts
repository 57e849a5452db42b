/**
 * Collects the output of one response: loop events become items, and events of a stream if there is one. The items of the
 * stream, of the response body and of the store are the same objects.
 */
import type { HistoryItem, ToolLoopEvent } from '#kernel'
import { newItemId } from '#shared'
import { approvalItem } from '../approvals.ts'
import type { TextSeal } from '../prompt/sealed-text.ts'
import type { CreateRequest } from '../read/read-request.ts'
import { CallItem } from './call-items.ts'
import type { EventEncoder } from './event-encoder.ts'
import { MessageItem, ReasoningItem } from './model-items.ts'
import { type EventOf, NativeItem, type OpenItem, type OutputOptions, sendWholeItem } from './open-item.ts'
import { BuiltInItem, ListItem, McpCallItem } from './tool-items.ts'

export function outputOptions(
  { include, store, summary, tools }: CreateRequest,
  seal: TextSeal,
  tenant: string,
): OutputOptions {
  const isSealed = include.has('reasoning.encrypted_content') || !store
  return {
    hasLogprobs: include.has('message.output_text.logprobs'),
    hasSummary: summary !== undefined,
    seal: isSealed ? (text) => seal.seal(tenant, text) : null,
    hasSources: include.has('web_search_call.action.sources'),
    hasCodeOutputs: include.has('code_interpreter_call.outputs'),
    hasSearchResults: include.has('file_search_call.results'),
    standIns: tools.standIns,
  }
}

export class OutputItems {
  readonly #events: EventEncoder | null
  readonly #options: OutputOptions
  readonly #open = new Map<number, OpenItem>()
  /** By index; an item that has not ended leaves a gap. */
  readonly #done: (HistoryItem | undefined)[] = []
  /** Hidden calls, by their position. */
  readonly #hidden: { readonly before: number; readonly item: HistoryItem }[] = []
  #onDone: (() => void) | null = null

  /** @param events null without a stream */
  constructor(events: EventEncoder | null, options: OutputOptions) {
    this.#events = events
    this.#options = options
  }

  /** Called after each item that ended. */
  onItemDone(listener: () => void): void {
    this.#onDone = listener
  }

  /** @param event any but `started`, `finished` and `failed` */
  add(event: ToolLoopEvent): void {
    switch (event.type) {
      case 'item_started':
        this.#begin(
          event.index,
          event.item === 'message'
            ? new MessageItem(event, this.#events, this.#options)
            : new ReasoningItem(event, this.#events, this.#options),
        )
        return
      case 'function_started':
        this.#begin(event.index, new CallItem(event, this.#events, this.#options))
        return
      case 'list_started':
        this.#begin(event.index, new ListItem(event, this.#events))
        return
      case 'call_started':
        this.#begin(
          event.index,
          event.tool.kind === 'mcp'
            ? new McpCallItem(event.index, event.tool, event.approvalId, this.#events)
            : new BuiltInItem(event.index, event.tool.type, this.#events, this.#options),
        )
        return
      case 'approval_requested':
        this.addWhole(event.index, approvalItem(event))
        return
      case 'native_started':
        this.#begin(event.index, new NativeItem(event, this.#events))
        return
      case 'native_answer_event':
        this.#events?.sendNative(event.event, null)
        return
      case 'native_item':
      case 'item_done':
      case 'function_done':
      case 'list_done':
      case 'list_failed':
      case 'call_done':
        this.#end(event.index, event)
        return
      case 'hidden_call':
        this.#hide(event)
        return
      default:
        if ('index' in event) this.#open.get(event.index)?.add(event)
    }
  }

  /** An item that is whole from the beginning. */
  addWhole(index: number, item: HistoryItem): void {
    sendWholeItem(index, item, this.#events)
    this.#done[index] = item
    this.#onDone?.()
  }

  /** All items in order; those that have not ended as incomplete. */
  items(): HistoryItem[] {
    const all: HistoryItem[] = []
    const count = this.#count
    for (let index = 0; index < count; index += 1) {
      const item = this.#done[index] ?? this.#open.get(index)?.incomplete()
      if (item !== undefined) all.push(item)
    }
    return all
  }

  /** Items for the store, with hidden calls in their positions. */
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

  #hide({ tool, arguments: args, modelText }: EventOf<'hidden_call'>): void {
    if (tool.kind !== 'mcp') return
    this.#hidden.push({
      before: this.#count,
      item: {
        id: newItemId('mcp_call'),
        type: '_hidden_call',
        server_label: tool.label,
        name: tool.name,
        arguments: args,
        _modelText: modelText,
      },
    })
  }
}
