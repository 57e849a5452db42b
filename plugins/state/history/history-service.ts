/** All of history over one store. */
import type { HistoryItem, HistoryService, StoreService } from '#kernel'
import { StoredQueue } from './background-queue.ts'
import { type Collections, type HistoryParts, openCollections } from './collections.ts'
import type { HistoryConfig } from './config.ts'
import { StoredConversations } from './conversation-history.ts'
import { StoredEvents } from './event-log.ts'
import { HistoryCache } from './history-cache.ts'
import { ItemIndex } from './item-index.ts'
import { StoredResponses } from './response-history.ts'
import { Retention } from './retention.ts'
import { TenantUsage } from './tenant-usage.ts'

export class StoredHistory implements HistoryService {
  readonly isShared: boolean
  readonly collections: Collections
  readonly responses: StoredResponses
  readonly conversations: StoredConversations
  readonly queue: StoredQueue
  readonly events: StoredEvents
  readonly retention: Retention
  readonly usage: TenantUsage
  readonly outage: () => string | null
  readonly #index: ItemIndex

  /**
   * @param isShared whether other gateways use the store too
   * @param outage problem of a store that is down; null while it works
   */
  constructor(
    store: StoreService,
    config: HistoryConfig,
    log: HistoryParts['log'],
    isShared = false,
    outage: () => string | null = () => null,
  ) {
    this.isShared = isShared
    this.outage = outage
    this.collections = openCollections(store)
    const parts = { ...this.collections, store, config, log, outage }
    this.usage = new TenantUsage(parts)
    this.#index = new ItemIndex(parts)
    const cache = new HistoryCache(config.cacheBytes)
    this.responses = new StoredResponses(parts, this.usage, cache)
    this.conversations = new StoredConversations(parts, this.usage, this.#index, cache)
    this.queue = new StoredQueue(parts)
    this.events = new StoredEvents(parts)
    this.retention = new Retention(parts, this.usage)
  }

  checkQuota(tenant: string, bytes: number): void | Promise<void> {
    return this.usage.check(tenant, { bytes, conversations: 0 })
  }

  resolveItems(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, HistoryItem> | null> {
    return this.#index.resolve(tenant, ids)
  }
}
