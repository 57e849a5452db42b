/** Items of conversations: appended atomically, found by id, read by page, removed from one conversation. */
import {
  type ConversationItem,
  type HistoryItem,
  type ItemPage,
  type ItemProblem,
  JsonText,
  type NewItem,
  type PageOptions,
  type StoredRecord,
} from '#kernel'
import { ChangeList, CONFLICT, changeConversation, SYNCED } from './change-list.ts'
import {
  type HistoryParts,
  isId,
  nowSec,
  positionId,
  type StoredConversation,
  within,
} from './collections.ts'
import { type ItemIndex, removeConversationPointer } from './item-index.ts'

/** Maximum conversations stored in the pointer of a shared item; older ones are not found by item id. */
const MAX_SHARES = 50
const PAGE_BYTES = 16 * 1024 * 1024

export class ConversationItems {
  readonly #parts: HistoryParts
  readonly #index: ItemIndex

  constructor(parts: HistoryParts, index: ItemIndex) {
    this.#parts = parts
    this.#index = index
  }

  /**
   * Adds the changes that append these items at position `next`.
   * @returns the items, or a problem with one of them
   */
  async append(
    tenant: string,
    list: ChangeList,
    conversation: string,
    next: number,
    news: readonly NewItem[],
  ): Promise<readonly ConversationItem[] | ItemProblem> {
    const { items, positions, conversationItems } = this.#parts
    const added: ConversationItem[] = []
    const createdAtSec = nowSec()
    const seen = new Set<string>()
    for (const [index, entry] of news.entries()) {
      const id = 'item' in entry ? entry.item.id : entry.reference
      if (seen.has(id)) return { problem: 'item_exists', id }
      seen.add(id)
      const pointer = isId(id) ? await items.read(tenant, id) : undefined
      let item: HistoryItem | undefined
      if ('item' in entry) {
        if (pointer !== undefined) return { problem: 'item_exists', id }
        item = entry.item
      } else {
        item = pointer === undefined ? undefined : (await this.#index.resolve(tenant, [id]))?.get(id)
        if (item === undefined) return { problem: 'item_not_found', id }
        const here = await positions.get(tenant, `${conversation}.${id}`)
        if (here !== undefined && !here.isGone) return { problem: 'item_exists', id }
      }
      const at = next + index
      const links = [...(pointer?.value.conversations ?? []), { id: conversation, at }].slice(-MAX_SHARES)
      list.put(items, id, { ...pointer?.value, conversations: links }, pointer?.version ?? null)
      list.put(positions, `${conversation}.${id}`, { at })
      const stored = { item, createdAtSec }
      list.put(conversationItems, positionId(conversation, at), new JsonText(JSON.stringify(stored)))
      added.push(stored)
    }
    return added
  }

  async get(tenant: string, conversation: string, itemId: string): Promise<ConversationItem | undefined> {
    const { positions, conversationItems } = this.#parts
    const position = isId(itemId) ? await positions.get(tenant, `${conversation}.${itemId}`) : undefined
    if (position === undefined || position.isGone) return undefined
    return conversationItems.get(tenant, positionId(conversation, position.at))
  }

  /** @returns bytes removed; null if the item is not in this conversation, CONFLICT if a record was changed meanwhile */
  async remove(
    tenant: string,
    found: StoredRecord<StoredConversation>,
    itemId: string,
  ): Promise<number | null | typeof CONFLICT> {
    const conversation = found.id
    const { items, positions, conversationItems, marks } = this.#parts
    const name = `${conversation}.${itemId}`
    const position = isId(itemId) ? await positions.read(tenant, name) : undefined
    if (position === undefined || position.value.isGone) return null
    const { at } = position.value
    const stored = await conversationItems.get(tenant, positionId(conversation, at))
    const bytes = stored === undefined ? 0 : Buffer.byteLength(JSON.stringify(stored))
    const list = new ChangeList(tenant)
      .put(positions, name, { at, isGone: true }, position.version)
      .delete(conversationItems, positionId(conversation, at))
      .mark(marks, conversation)
    changeConversation(list, this.#parts, found, -bytes)
    await removeConversationPointer(tenant, list, items, itemId, conversation)
    return (await this.#parts.store.write(list.changes, SYNCED)) === null ? CONFLICT : bytes
  }

  async page(
    tenant: string,
    conversation: string,
    { order, limit, after }: PageOptions,
  ): Promise<ItemPage | ItemProblem> {
    const { positions, conversationItems } = this.#parts
    let cursor: string | undefined
    if (after !== undefined) {
      const position = isId(after) ? await positions.get(tenant, `${conversation}.${after}`) : undefined
      if (position === undefined) return { problem: 'item_not_found', id: after }
      cursor = positionId(conversation, position.at)
    }
    const { records, next } = await conversationItems.range(tenant, {
      ...within(conversation),
      reverse: order === 'desc',
      after: cursor,
      limit: limit + 1,
      maxBytes: PAGE_BYTES,
    })
    const items = records.slice(0, limit).map(({ value }) => value)
    return { items, hasMore: records.length > limit || next !== null }
  }
}
