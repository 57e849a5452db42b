/** All of history over one store. */
import type { HistoryItem, HistoryService, Logger, StoreService } from '#kernel'
import { StoredQueue } from './background-queue.ts'
import { ChainReader } from './chain-reader.ts'
import { openCollections } from './collections.ts'
import type { HistoryConfig } from './config.ts'
import { StoredConversations } from './conversation-history.ts'
import { ConversationItems } from './conversation-items.ts'
import { StoredEvents } from './event-log.ts'
import { ItemIndex } from './item-index.ts'
import { StoredResponses } from './response-history.ts'
import { Retention } from './retention.ts'
import { TenantUsage } from './tenant-usage.ts'

export class StoredHistory implements HistoryService {
  readonly isShared: boolean
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
    log: Logger,
    isShared = false,
    outage: () => string | null = () => null,
  ) {
    this.isShared = isShared
    this.outage = outage
    const collections = openCollections(store)
    this.usage = new TenantUsage({ store, collections, config, log, outage })
    this.#index = new ItemIndex(collections, config)
    this.responses = new StoredResponses(store, collections, new ChainReader(collections, config), this.usage)
    const items = new ConversationItems(store, collections, this.#index)
    this.conversations = new StoredConversations(store, collections, items, config, this.usage)
    this.queue = new StoredQueue(store, collections, config.ownerLeaseMs, log)
    this.events = new StoredEvents(store, collections.events, config.eventsKeptMs)
    this.retention = new Retention(store, collections, config, this.usage)
  }

  checkQuota(tenant: string, bytes: number): void | Promise<void> {
    return this.usage.check(tenant, { bytes, conversations: 0 })
  }

  resolveItems(tenant: string, ids: readonly string[]): Promise<ReadonlyMap<string, HistoryItem> | null> {
    return this.#index.resolve(tenant, ids)
  }
}
