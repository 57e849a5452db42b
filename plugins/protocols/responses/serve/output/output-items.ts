/**
 * Output items of one response, in order. The items of the stream, of the response body and of the store are the same objects.
 */
import type { HistoryItem } from '#kernel'
import { newItemId } from '#shared'
import type { TextSeal } from '../prompt/sealed-text.ts'
import type { CreateRequest } from '../read/read-request.ts'
import type { EventEncoder } from './event-encoder.ts'
import { type EventOf, type ItemEnd, OpenItem, type OutputOptions, sendWholeItem } from './open-item.ts'

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
  protected readonly events: EventEncoder | null
  protected readonly options: OutputOptions
  /** By index. */
  readonly #all: (OpenItem | HistoryItem)[] = []
  /** Hidden calls, by their position. */
  readonly #hidden: { readonly before: number; readonly item: HistoryItem }[] = []
  #onDone: (() => void) | null = null

  /** @param events null without a stream */
  constructor(events: EventEncoder | null, options: OutputOptions) {
    this.events = events
    this.options = options
  }

  /** Called after each item that ended. */
  onItemDone(listener: () => void): void {
    this.#onDone = listener
  }

  /** An item that is whole from the beginning. */
  addWhole(item: HistoryItem): void {
    sendWholeItem(this.#all.length, item, this.events)
    this.#all.push(item)
    this.#onDone?.()
  }

  /** All items in order; those that have not ended as incomplete. */
  items(): HistoryItem[] {
    return this.#all.map((item) => (item instanceof OpenItem ? item.incomplete() : item))
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

  get isEmpty(): boolean {
    return this.#all.length === 0
  }

  /** Begins an item. */
  protected begin(make: (index: number, events: EventEncoder | null) => OpenItem): OpenItem {
    const item = make(this.#all.length, this.events)
    this.#all.push(item)
    item.begin()
    return item
  }

  /** Ends an item that is open. */
  protected close(item: OpenItem | undefined, end: ItemEnd): void {
    if (item === undefined || this.#all[item.index] !== item) return
    this.#all[item.index] = item.end(end)
    this.#onDone?.()
  }

  protected hide({ tool, arguments: args, modelText }: EventOf<'hidden_call'>): void {
    if (tool.kind !== 'mcp') return
    this.#hidden.push({
      before: this.#all.length,
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
