/**
 * Stored bytes and conversations of each tenant, their limits and their metric. Each thread adds its changes to the stored totals of the
 * tenant once a second; a crash loses at most the changes of that second, until the tenant is counted again.
 */
import type { Metrics, StoredRecord } from '#kernel'
import { CoalescedWork, FailureLog, isUnreadableRecord, LabelLimit, pagesOf, tenantsOf } from '#shared'
import { ChangeList, CONFLICT, retryOnConflict } from './change-list.ts'
import type { Collections, HistoryParts, StoredUsage } from './collections.ts'
import { historyErrors } from './errors.ts'

/** Delay of a change until other threads and gateways see it, and age of the totals that a check uses. Milliseconds. */
const FLUSH_MS = 1_000
/** Tenants whose totals a thread keeps. */
const MAX_KNOWN = 10_000
const ID = 'total'
const NOTHING: StoredUsage = { bytes: 0, conversations: 0 }
/** Clients that know the header do not retry. */
const NO_RETRY = { headers: ['x-should-retry', 'false'] }
const MAX_TENANT_LABELS = 100
const RECOUNT_MS = 3_600_000

interface KnownUsage extends StoredUsage {
  readonly readAtMs: number
}

export class TenantUsage {
  readonly #parts: HistoryParts
  readonly #known = new Map<string, KnownUsage>()
  /** Changes of this thread that are not in the stored totals yet. */
  readonly #pending = new Map<string, StoredUsage>()
  #timer: NodeJS.Timeout | null = null
  /** One run at a time, so that no change is added twice. */
  readonly #failures: FailureLog
  readonly #flushes = new CoalescedWork(() => this.#flushAll())

  constructor(parts: HistoryParts) {
    this.#parts = parts
    this.#failures = new FailureLog(parts.log, 'stored bytes of tenants could not be updated')
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
    const { usage } = this.#parts
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
    const responses = await this.#countIn(this.#parts.ages, tenant)
    const conversations = await this.#countIn(this.#parts.conversationAges, tenant)
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
    let failure: unknown = null
    for (const [tenant, change] of [...this.#pending])
      await this.#flushTenant(tenant, change).catch((error: unknown) => {
        failure = error
      })
    if (failure === null) return this.#failures.succeeded()
    this.#failures.failed(failure)
    this.#flushLater()
  }

  #flushLater(): void {
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref()
  }

  async #flushTenant(tenant: string, change: StoredUsage): Promise<void> {
    const { usage } = this.#parts
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

/** Reports the stored bytes of tenants as a metric, and corrects their totals from time to time. Runs on control. */
export class UsageReport {
  readonly #usage: TenantUsage
  readonly #tenants: Collections['usage']
  readonly #labels = new LabelLimit(MAX_TENANT_LABELS)
  readonly #gauge: ReturnType<Metrics['gauge']>
  #recountAtMs = 0

  constructor(usage: TenantUsage, tenants: Collections['usage'], metrics: Metrics) {
    this.#usage = usage
    this.#tenants = tenants
    this.#gauge = metrics.gauge({
      name: 'weir_history_stored_bytes',
      help: 'Bytes of JSON of stored responses and conversations, by tenant; `other` beyond 100 tenants.',
      labels: ['tenant'],
    })
  }

  /** Reads the totals of all tenants; the first time and then once an hour, counts them first. */
  async refresh(): Promise<void> {
    const isRecount = performance.now() >= this.#recountAtMs
    if (isRecount) this.#recountAtMs = performance.now() + RECOUNT_MS
    const bytesOf = new Map<string, number>()
    for await (const tenant of tenantsOf(this.#tenants)) {
      if (isRecount) await this.#usage.recount(tenant)
      const { bytes } = await this.#usage.totals(tenant)
      const label = this.#labels.admit(tenant)
      bytesOf.set(label, (bytesOf.get(label) ?? 0) + bytes)
    }
    for (const [label, bytes] of bytesOf) this.#gauge.labels(label).value = bytes
  }
}
