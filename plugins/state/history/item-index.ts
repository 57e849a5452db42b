/** Finds items by id, wherever they are. */
import type { HistoryItem } from '#kernel'
import { approximateBytes } from './approximate-bytes.ts'
import { type Collections, type ItemPointer, isId, positionId } from './collections.ts'
import type { HistoryConfig } from './config.ts'

/** Read at a time. Of a turn, that is all of it, however few of its items are wanted. */
const TURNS = 16
const ITEMS = 100

export class ItemIndex {
  readonly #collections: Collections
  readonly #config: HistoryConfig

  constructor(collections: Collections, config: HistoryConfig) {
    this.#collections = collections
    this.#config = config
  }

  /** Unknown ids, and ids whose item is gone, are left out. @returns null when it is more than one request may load */
  async resolve(tenant: string, ids: readonly string[]): Promise<Map<string, HistoryItem> | null> {
    const { turns, conversationItems } = this.#collections
    const { maxHistoryBytes, maxHistoryItems } = this.#config
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
      for (const turn of await turns.getMany(tenant, batch)) {
        for (const item of turn?.input ?? []) take(item)
        for (const item of turn?.output ?? []) take(item)
      }
      if (bytes > maxHistoryBytes) return null
    }
    // What no turn has, or has no more, may be in a conversation.
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
    const pointers = await this.#collections.items.getMany(tenant, ids)
    const known = new Map<string, ItemPointer>()
    for (const [index, pointer] of pointers.entries())
      if (pointer !== undefined) known.set(ids[index], pointer)
    return known
  }
}

function* batchesOf(ids: readonly string[], size: number): Generator<readonly string[]> {
  for (let from = 0; from < ids.length; from += size) yield ids.slice(from, from + size)
}
