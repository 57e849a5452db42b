/** Finds items by id, wherever they are. */
import type { HistoryItem } from '#contracts'
import { type Collections, isId, positionId } from './collections.ts'

export class ItemIndex {
  readonly #collections: Collections

  constructor(collections: Collections) {
    this.#collections = collections
  }

  /** Unknown ids, and ids whose item is gone, are left out. */
  async resolve(tenant: string, ids: readonly string[]): Promise<Map<string, HistoryItem>> {
    const { items, turns, conversationItems } = this.#collections
    const asked = [...new Set(ids)].filter(isId)
    const pointers = await items.getMany(tenant, asked)
    const turnIds = new Set<string>()
    const itemPlaces = new Set<string>()
    for (const pointer of pointers) {
      if (pointer?.turn !== undefined) turnIds.add(pointer.turn)
      for (const { id, at } of pointer?.conversations ?? []) itemPlaces.add(positionId(id, at))
    }
    const [foundTurns, foundItems] = await Promise.all([
      turns.getMany(tenant, [...turnIds]),
      conversationItems.getMany(tenant, [...itemPlaces]),
    ])
    const wanted = new Set(asked)
    const found = new Map<string, HistoryItem>()
    const take = (item: HistoryItem) => {
      if (wanted.has(item.id)) found.set(item.id, item)
    }
    for (const stored of foundItems) if (stored !== undefined) take(stored.item)
    for (const turn of foundTurns) {
      for (const item of turn?.input ?? []) take(item)
      for (const item of turn?.output ?? []) take(item)
    }
    return found
  }
}
