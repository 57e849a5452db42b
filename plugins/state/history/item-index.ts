/** Finds items by id in turns and conversations. */
import type { HistoryItem } from '#kernel'
import type { ChangeList } from './change-list.ts'
import {
  type Collections,
  type HistoryParts,
  type ItemPointer,
  isId,
  itemsOf,
  positionId,
} from './collections.ts'
import { approximateBytes } from './history-cache.ts'

/** Records per read; a turn is always read completely. */
const TURNS = 16
const ITEMS = 100

export class ItemIndex {
  readonly #parts: HistoryParts

  constructor(parts: HistoryParts) {
    this.#parts = parts
  }

  /** Omits unknown ids. @returns null if the items exceed the limits of a request */
  async resolve(tenant: string, ids: readonly string[]): Promise<Map<string, HistoryItem> | null> {
    const { turns, conversationItems } = this.#parts
    const { maxHistoryBytes, maxHistoryItems } = this.#parts.config
    const wanted = new Set(ids.filter(isId))
    if (wanted.size > maxHistoryItems) return null
    const pointers = await this.#pointersTo(tenant, [...wanted])
    const found = new Map<string, HistoryItem>()
    let bytes = 0
    const take = (item: HistoryItem) => {
      if (!wanted.has(item.id) || found.has(item.id)) return
      found.set(item.id, item)
      bytes += approximateBytes(item)
    }
    const turnIds = new Set<string>()
    for (const { turn } of pointers.values()) if (turn !== undefined) turnIds.add(turn)
    for (const batch of batchesOf([...turnIds], TURNS)) {
      for (const turn of await turns.getMany(tenant, batch)) itemsOf(turn).forEach(take)
      if (bytes > maxHistoryBytes) return null
    }
    // Items that are not in a turn may be in a conversation.
    const places = new Set<string>()
    for (const [id, { conversations = [] }] of pointers)
      if (!found.has(id)) for (const link of conversations) places.add(positionId(link.id, link.at))
    for (const batch of batchesOf([...places], ITEMS)) {
      for (const stored of await conversationItems.getMany(tenant, batch))
        if (stored !== undefined) take(stored.item)
      if (bytes > maxHistoryBytes) return null
    }
    return found
  }

  async #pointersTo(tenant: string, ids: readonly string[]): Promise<Map<string, ItemPointer>> {
    const pointers = await this.#parts.items.getMany(tenant, ids)
    const known = new Map<string, ItemPointer>()
    for (const [index, pointer] of pointers.entries())
      if (pointer !== undefined) known.set(ids[index], pointer)
    return known
  }
}

function* batchesOf(ids: readonly string[], size: number): Generator<readonly string[]> {
  for (let from = 0; from < ids.length; from += size) yield ids.slice(from, from + size)
}

/** Removes the turn from the pointers of its items; items that are also in a conversation remain found there. */
export async function removeTurnPointers(
  tenant: string,
  list: ChangeList,
  items: Collections['items'],
  turnItems: readonly HistoryItem[],
): Promise<void> {
  const pointers = await Promise.all(turnItems.map(({ id }) => items.read(tenant, id)))
  for (const [index, pointer] of pointers.entries()) {
    if (pointer === undefined) continue
    const { conversations } = pointer.value
    const { id } = turnItems[index]
    if (conversations === undefined) list.delete(items, id, pointer.version)
    else list.put(items, id, { conversations }, pointer.version)
  }
}

/** Removes the conversation from the pointer of an item; an item that is nowhere else is no longer found. */
export async function removeConversationPointer(
  tenant: string,
  list: ChangeList,
  items: Collections['items'],
  itemId: string,
  conversation: string,
): Promise<void> {
  const pointer = await items.read(tenant, itemId)
  if (pointer === undefined) return
  const { turn, conversations = [] } = pointer.value
  const left = conversations.filter(({ id }) => id !== conversation)
  if (left.length > 0) list.put(items, itemId, { ...pointer.value, conversations: left }, pointer.version)
  else if (turn !== undefined) list.put(items, itemId, { turn }, pointer.version)
  else list.delete(items, itemId, pointer.version)
}
