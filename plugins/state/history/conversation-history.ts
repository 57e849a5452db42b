/** Conversations, their items and their lock. */
import type {
  Conversation,
  ConversationHistory,
  ConversationItem,
  ConversationLock,
  HistoryItem,
  HistoryProblem,
  ItemPage,
  ItemProblem,
  LoadedHistory,
  NewItem,
  PageOptions,
  StoredRecord,
} from '#kernel'
import { pagesOf } from '#shared'
import {
  ChangeList,
  CONFLICT,
  changeConversation,
  deleteConversation,
  putConversation,
  retryOnConflict,
  SYNCED,
} from './change-list.ts'
import {
  type HistoryParts,
  isId,
  nowSec,
  positionId,
  type StoredConversation,
  within,
} from './collections.ts'
import { ConversationItems } from './conversation-items.ts'
import { HeldLock, putLock } from './conversation-lock.ts'
import { approximateBytes, CACHED_MS, type HistoryCache } from './history-cache.ts'
import type { ItemIndex } from './item-index.ts'
import type { TenantUsage } from './tenant-usage.ts'

const NOT_FOUND = { problem: 'conversation_not_found' } as const

export class StoredConversations implements ConversationHistory {
  readonly #parts: HistoryParts
  readonly #usage: TenantUsage
  readonly #items: ConversationItems
  readonly #cache: HistoryCache

  constructor(parts: HistoryParts, usage: TenantUsage, index: ItemIndex, cache: HistoryCache) {
    this.#parts = parts
    this.#usage = usage
    this.#items = new ConversationItems(parts, index)
    this.#cache = cache
  }

  create(
    tenant: string,
    conversation: Conversation,
    items: readonly NewItem[] = [],
  ): Promise<Conversation | ItemProblem> {
    return retryOnConflict(async () => {
      const { id, createdAtSec, metadata } = conversation
      const list = new ChangeList(tenant)
      const added = await this.#items.append(tenant, list, id, 0, items)
      if ('problem' in added) return added
      const bytes = list.textBytes + metadataBytes(metadata)
      await this.#usage.check(tenant, { bytes, conversations: 1 })
      const value = { createdAtSec, metadata, next: items.length, changedAtSec: nowSec(), bytes }
      putConversation(list, this.#parts, id, value, null)
      if ((await this.#parts.store.write(list.changes, SYNCED)) === null) return CONFLICT
      this.#usage.add(tenant, bytes, 1)
      return conversation
    })
  }

  async get(tenant: string, id: string): Promise<Conversation | undefined> {
    const found = await this.#read(tenant, id)
    return found && toConversation(found)
  }

  changeMetadata(
    tenant: string,
    id: string,
    change: Parameters<ConversationHistory['changeMetadata']>[2],
  ): Promise<Conversation | undefined> {
    return retryOnConflict(async () => {
      const found = await this.#read(tenant, id)
      if (found === undefined) return undefined
      const metadata = change(found.value.metadata)
      const added = metadataBytes(metadata) - metadataBytes(found.value.metadata)
      const list = new ChangeList(tenant)
      const value = changeConversation(list, this.#parts, found, added, { metadata })
      if ((await this.#parts.store.write(list.changes, SYNCED)) === null) return CONFLICT
      this.#usage.add(tenant, added)
      return toConversation({ id, value })
    })
  }

  /** The items become inaccessible and are deleted later. */
  delete(tenant: string, id: string): Promise<boolean> {
    return retryOnConflict(async () => {
      const found = await this.#read(tenant, id)
      if (found === undefined) return false
      const list = new ChangeList(tenant)
      deleteConversation(list, this.#parts, found)
      if ((await this.#parts.store.write(list.changes, SYNCED)) === null) return CONFLICT
      this.#usage.add(tenant, -found.value.bytes, -1)
      return true
    })
  }

  add(
    tenant: string,
    id: string,
    items: readonly NewItem[],
  ): Promise<readonly ConversationItem[] | ItemProblem> {
    return retryOnConflict(async () => {
      const found = await this.#read(tenant, id)
      if (found === undefined) return NOT_FOUND
      const list = new ChangeList(tenant)
      const { next } = found.value
      const added = await this.#items.append(tenant, list, id, next, items)
      if ('problem' in added) return added
      const bytes = list.textBytes
      await this.#usage.check(tenant, { bytes, conversations: 0 })
      changeConversation(list, this.#parts, found, bytes, { next: next + items.length })
      if ((await this.#parts.store.write(list.changes, SYNCED)) === null) return CONFLICT
      this.#usage.add(tenant, bytes)
      return added
    })
  }

  async item(tenant: string, id: string, itemId: string): Promise<ConversationItem | ItemProblem> {
    if ((await this.#read(tenant, id)) === undefined) return NOT_FOUND
    return (await this.#items.get(tenant, id, itemId)) ?? { problem: 'item_not_found', id: itemId }
  }

  removeItem(tenant: string, id: string, itemId: string): Promise<Conversation | ItemProblem> {
    return retryOnConflict(async () => {
      const found = await this.#read(tenant, id)
      if (found === undefined) return NOT_FOUND
      const bytes = await this.#items.remove(tenant, found, itemId)
      if (bytes === null) return { problem: 'item_not_found', id: itemId } as const
      if (bytes === CONFLICT) return CONFLICT
      this.#usage.add(tenant, -bytes)
      return toConversation(found)
    })
  }

  async page(tenant: string, id: string, options: PageOptions): Promise<ItemPage | ItemProblem> {
    if ((await this.#read(tenant, id)) === undefined) return NOT_FOUND
    return this.#items.page(tenant, id, options)
  }

  async load(tenant: string, id: string): Promise<LoadedHistory | HistoryProblem> {
    const found = await this.#read(tenant, id)
    if (found === undefined) return { problem: 'not_found' }
    // Read before the items, so that a later deletion changes a mark that was read.
    const nowMs = performance.now()
    const [mark] = await this.#parts.marks.getMany(tenant, [id])
    const cached = this.#cache.conversation(tenant, id)
    const isCurrent = cached !== undefined && cached.marks[0] === mark && nowMs - cached.readAtMs <= CACHED_MS
    const known = isCurrent ? cached : { items: [], bytes: 0, next: 0, readAtMs: nowMs }
    if (known.next === found.value.next) return { items: known.items, bytes: known.bytes }
    const { maxHistoryBytes, maxHistoryItems } = this.#parts.config
    const items: HistoryItem[] = [...known.items]
    let { bytes, next } = known
    const bounds = { ...within(id), from: positionId(id, next) }
    for await (const records of pagesOf(this.#parts.conversationItems, tenant, bounds)) {
      for (const { id: name, value } of records) {
        items.push(value.item)
        bytes += approximateBytes(value.item)
        next = Number(name.slice(id.length + 1)) + 1
      }
      if (bytes > maxHistoryBytes || items.length > maxHistoryItems) return { problem: 'too_long' }
    }
    next = Math.max(next, found.value.next)
    this.#cache.set(tenant, id, { items, bytes, marks: [mark], next, readAtMs: known.readAtMs })
    return { items, bytes }
  }

  async lock(tenant: string, id: string): Promise<ConversationLock | null> {
    if (!isId(id)) return null
    const version = await putLock(tenant, id, null, this.#parts)
    return version === null ? null : new HeldLock(tenant, id, version, this.#parts)
  }

  async #read(tenant: string, id: string): Promise<StoredRecord<StoredConversation> | undefined> {
    return isId(id) ? this.#parts.conversations.read(tenant, id) : undefined
  }
}

function metadataBytes(metadata: Conversation['metadata']): number {
  return Buffer.byteLength(JSON.stringify(metadata))
}

function toConversation({ id, value }: Pick<StoredRecord<StoredConversation>, 'id' | 'value'>): Conversation {
  return { id, createdAtSec: value.createdAtSec, metadata: value.metadata }
}
