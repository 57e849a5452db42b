/**
 * Stored bytes and conversations of each tenant, and their limits. Each thread adds its changes to the stored totals of the
 * tenant once a second; a crash loses at most the changes of that second, until the tenant is counted again.
 */
import type { Logger, StoredRecord, StoreService } from '#kernel'
import { CoalescedWork, isUnreadableRecord, pagesOf } from '#shared'
import { ChangeList } from './change-list.ts'
import type { Collections, StoredUsage } from './collections.ts'
import type { HistoryConfig } from './config.ts'
import { historyErrors } from './errors.ts'
import { CONFLICT, retryOnConflict } from './retry-on-conflict.ts'

/** Delay of a change until other threads and gateways see it, and age of the totals that a check uses. Milliseconds. */
const FLUSH_MS = 1_000
/** Tenants whose totals a thread keeps. */
const MAX_KNOWN = 10_000
const ID = 'total'
const NOTHING: StoredUsage = { bytes: 0, conversations: 0 }
/** Clients that know the header do not retry. */
const NO_RETRY = { headers: ['x-should-retry', 'false'] }

interface KnownUsage extends StoredUsage {
  readonly readAtMs: number
}

export interface TenantUsageParts {
  readonly store: StoreService
  readonly collections: Collections
  readonly config: HistoryConfig
  readonly log: Pick<Logger, 'warn'>
  /** Problem of a store that is down; null while it works. */
  readonly outage: () => string | null
}

export class TenantUsage {
  readonly #parts: TenantUsageParts
  readonly #known = new Map<string, KnownUsage>()
  /** Changes of this thread that are not in the stored totals yet. */
  readonly #pending = new Map<string, StoredUsage>()
  #timer: NodeJS.Timeout | null = null
  /** One run at a time, so that no change is added twice. */
  readonly #flushes = new CoalescedWork(() => this.#flushAll())

  constructor(parts: TenantUsageParts) {
    this.#parts = parts
  }

  /**
   * Checks the limits before a tenant stores more. Reads one record at most once a second per tenant.
   * @throws storage_quota_exceeded (507), conversation_quota_exceeded (429)
   */
  check(tenant: string, added: StoredUsage): void | Promise<void> {
    const { maxBytesPerTenant, maxConversationsPerTenant } = this.#parts.config
    if (maxBytesPerTenant === null && maxConversationsPerTenant === null) return
    const known = this.#known.get(tenant)
    if (known !== undefined && performance.now() - known.readAtMs < FLUSH_MS)
      return this.#assertWithin(tenant, known, added)
    return this.totals(tenant).then((totals) => this.#assertWithin(tenant, totals, added))
  }

  /** Counts a change that was written. */
  add(tenant: string, bytes: number, conversations = 0): void {
    this.#pending.set(tenant, sum(this.#pending.get(tenant) ?? NOTHING, { bytes, conversations }))
    this.#flushLater()
  }

  /** The stored totals, without pending changes. */
  async totals(tenant: string): Promise<StoredUsage> {
    const stored = (await this.#read(tenant))?.value ?? NOTHING
    this.#know(tenant, stored)
    return stored
  }

  /** Adds pending changes to the stored totals. Never rejects; what fails is retried. */
  flush(): Promise<void> {
    return this.#flushes.run()
  }

  /** Corrects the totals of a tenant by counting its responses and conversations. */
  async recount(tenant: string): Promise<void> {
    await this.flush()
    const before = await this.totals(tenant)
    const counted = await this.#count(tenant)
    this.add(tenant, counted.bytes - before.bytes, counted.conversations - before.conversations)
  }

  /** The stored record; a damaged one is replaced by a count. */
  async #read(tenant: string): Promise<StoredRecord<StoredUsage> | undefined> {
    const { usage } = this.#parts.collections
    try {
      return await usage.read(tenant, ID)
    } catch (err) {
      if (!isUnreadableRecord(err)) throw err
      this.#parts.log.warn({ err, tenant }, 'stored bytes of tenant counted again')
      await usage.put(tenant, ID, await this.#count(tenant))
      return usage.read(tenant, ID)
    }
  }

  async #count(tenant: string): Promise<StoredUsage> {
    const responses = await this.#countIn(this.#parts.collections.ages, tenant)
    const conversations = await this.#countIn(this.#parts.collections.conversationAges, tenant)
    return { bytes: responses.bytes + conversations.bytes, conversations: conversations.records }
  }

  async #countIn(ages: Collections['ages'], tenant: string): Promise<{ bytes: number; records: number }> {
    let bytes = 0
    let records = 0
    for await (const page of pagesOf(ages, tenant)) {
      for (const { value } of page) bytes += value
      records += page.length
    }
    return { bytes, records }
  }

  async #flushAll(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#pending.size > 0 && this.#parts.outage() !== null) {
      this.#flushLater()
      return
    }
    for (const [tenant, change] of [...this.#pending]) {
      try {
        await this.#flushTenant(tenant, change)
      } catch (err) {
        this.#parts.log.warn({ err, tenant }, 'stored bytes of tenant could not be updated')
        this.#flushLater()
      }
    }
  }

  #flushLater(): void {
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref()
  }

  async #flushTenant(tenant: string, change: StoredUsage): Promise<void> {
    const { usage } = this.#parts.collections
    const stored = await retryOnConflict(async () => {
      const before = await this.#read(tenant)
      const { bytes, conversations } = sum(before?.value ?? NOTHING, change)
      const value = { bytes: Math.max(0, bytes), conversations: Math.max(0, conversations) }
      const list = new ChangeList(tenant).put(usage, ID, value, before?.version ?? null)
      return (await this.#parts.store.write(list.changes)) === null ? CONFLICT : value
    })
    const left = sum(this.#pending.get(tenant) ?? NOTHING, {
      bytes: -change.bytes,
      conversations: -change.conversations,
    })
    if (left.bytes === 0 && left.conversations === 0) this.#pending.delete(tenant)
    else this.#pending.set(tenant, left)
    this.#know(tenant, stored)
  }

  #know(tenant: string, { bytes, conversations }: StoredUsage): void {
    this.#known.delete(tenant)
    this.#known.set(tenant, { bytes, conversations, readAtMs: performance.now() })
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN) break
      this.#known.delete(oldest)
    }
  }

  #assertWithin(tenant: string, stored: StoredUsage, added: StoredUsage): void {
    const { maxBytesPerTenant, maxConversationsPerTenant } = this.#parts.config
    const { bytes, conversations } = sum(stored, this.#pending.get(tenant) ?? NOTHING)
    if (maxBytesPerTenant !== null && bytes + added.bytes > maxBytesPerTenant)
      throw historyErrors.storage_quota_exceeded.with(NO_RETRY, bytes, added.bytes, maxBytesPerTenant)
    if (
      maxConversationsPerTenant !== null &&
      added.conversations > 0 &&
      conversations + added.conversations > maxConversationsPerTenant
    )
      throw historyErrors.conversation_quota_exceeded.with(NO_RETRY, conversations, maxConversationsPerTenant)
  }
}

function sum(a: StoredUsage, b: StoredUsage): StoredUsage {
  return { bytes: a.bytes + b.bytes, conversations: a.conversations + b.conversations }
}
