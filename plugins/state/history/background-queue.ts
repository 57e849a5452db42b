/**
 * The queue of background work. Waiting jobs lie under their tenant in order of age; claimed ones under their owner, who
 * proves once for all of them that it lives, however many it has.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from '#kernel'
import {
  type BackgroundQueue,
  type Change,
  GATEWAY_TENANT,
  type Job,
  type StoredRecord,
  type StoreService,
} from '#kernel'
import { type Collections, type WaitingJob, within } from './collections.ts'
import { HeldJob } from './held-job.ts'

/** A lease is renewed so many times before it would run out. */
const RENEWALS = 3
const TENANTS = 100
/** Waiting jobs of a tenant that one claim reads where the first of them rest, and in how many readings. */
const LOOKED_AT = 1_000
const RESTING_PAGES = 10

export class StoredQueue implements BackgroundQueue {
  readonly #store: StoreService
  readonly #collections: Collections
  readonly #leaseMs: number
  readonly #log: Logger
  readonly #owner = randomUUID().replaceAll('-', '')
  #renewal: NodeJS.Timeout | null = null
  /** Jobs that may have been taken, as the store failed meanwhile: of those that wait, and of those that were lost. */
  readonly #unsure = { waiting: new Set<HeldJob>(), lost: new Set<HeldJob>() }
  /** Where the last round over the tenants ended, so that each has its turn. */
  #lastTenant: string | undefined

  constructor(store: StoreService, collections: Collections, leaseMs: number, log: Logger) {
    this.#store = store
    this.#collections = collections
    this.#leaseMs = leaseMs
    this.#log = log
  }

  async claim(limit: number, room: (tenant: string) => number): Promise<Job[]> {
    await this.#prove()
    const { waitingJobs } = this.#collections
    const claimed: Job[] = []
    await this.#keepingTaken(claimed, async () => {
      await this.#findUnsure(this.#unsure.waiting, claimed)
      const tenants = await waitingJobs.tenants({ after: this.#lastTenant, limit: TENANTS })
      this.#lastTenant = tenants.length < TENANTS ? undefined : tenants.at(-1)
      for (const tenant of tenants) {
        const most = Math.min(limit - claimed.length, room(tenant))
        if (most <= 0) continue
        const taken = (await this.#readyOf(tenant, most)).map(({ id, value: { attempts }, version }) => {
          const job = new HeldJob({ tenant, responseId: id, attempts }, this.#owner)
          const target = { collection: waitingJobs.name, tenant, id, onlyIf: version }
          return this.#take(job, { kind: 'delete', ...target }, this.#unsure.waiting)
        })
        await addAll(taken, claimed)
        if (claimed.length >= limit) {
          this.#lastTenant = tenant
          break
        }
      }
    })
    return claimed
  }

  async giveBack(job: Job, restMs = 0): Promise<void> {
    if (!(job instanceof HeldJob)) return
    const { waitingJobs, claimedJobs } = this.#collections
    const { tenant, responseId: id, attempts } = job
    const version = await job.version(claimedJobs)
    // Given back before, by a write that failed for this thread only; or somebody else's by now.
    if (version === undefined) return
    const value = { attempts: attempts + 1, ...(restMs > 0 && { notBeforeMs: Date.now() + restMs }) }
    const waiting: Change = { kind: 'put', collection: waitingJobs.name, tenant, id, value }
    await this.#store.write([waiting, job.ending(claimedJobs, version)])
  }

  async drop(job: Job): Promise<void> {
    if (job instanceof HeldJob) await this.#store.write([job.ending(this.#collections.claimedJobs)])
  }

  async takeLost(limit: number): Promise<Job[]> {
    await this.#prove()
    const { claimedJobs, jobOwners } = this.#collections
    const lost: Job[] = []
    await this.#keepingTaken(lost, async () => {
      await this.#findUnsure(this.#unsure.lost, lost)
      let from = ''
      while (lost.length < limit) {
        const [next] = (await claimedJobs.range(GATEWAY_TENANT, { from, limit: 1 })).records
        if (next === undefined) break
        const owner = next.id.slice(0, next.id.indexOf('.'))
        const bounds = within(owner)
        from = bounds.to
        if (owner === this.#owner || (await jobOwners.get(GATEWAY_TENANT, owner)) !== undefined) continue
        const { records } = await claimedJobs.range(GATEWAY_TENANT, { ...bounds, limit: limit - lost.length })
        const taken = records.map(({ id, value, version }) => {
          const job = new HeldJob({ ...value, attempts: value.attempts + 1 }, this.#owner)
          const target = { collection: claimedJobs.name, tenant: GATEWAY_TENANT, id, onlyIf: version }
          return this.#take(job, { kind: 'delete', ...target }, this.#unsure.lost)
        })
        await addAll(taken, lost)
      }
    })
    return lost
  }

  async waiting(tenant: string, limit: number): Promise<number> {
    let count = 0
    let after: string | undefined
    do {
      const page = await this.#collections.waitingJobs.range(tenant, {
        limit: Math.min(1_000, limit - count),
        after,
      })
      count += page.records.length
      after = page.next ?? undefined
    } while (after !== undefined && count < limit)
    return count
  }

  /** Other threads may take what this one has not ended. */
  async stop(): Promise<void> {
    if (this.#renewal === null) return
    clearInterval(this.#renewal)
    this.#renewal = null
    await this.#collections.jobOwners.delete(GATEWAY_TENANT, this.#owner).catch(() => undefined)
  }

  /** The oldest waiting jobs of a tenant that do not rest, looked for among the first of all. */
  async #readyOf(tenant: string, most: number): Promise<StoredRecord<WaitingJob>[]> {
    const ready: StoredRecord<WaitingJob>[] = []
    const nowMs = Date.now()
    let looked = 0
    let after: string | undefined
    do {
      const limit = looked === 0 ? most : Math.max(most, LOOKED_AT / RESTING_PAGES)
      const page = await this.#collections.waitingJobs.range(tenant, { limit, after })
      for (const record of page.records)
        if (ready.length < most && (record.value.notBeforeMs ?? 0) <= nowMs) ready.push(record)
      looked += page.records.length
      after = page.next ?? undefined
    } while (after !== undefined && ready.length < most && looked < LOOKED_AT)
    return ready
  }

  /** @param before takes it from where it is @returns null when somebody else was quicker */
  async #take(job: HeldJob, before: Change, unsure: Set<HeldJob>): Promise<Job | null> {
    try {
      const isTaken =
        (await this.#store.write([before, job.claiming(this.#collections.claimedJobs)])) !== null
      return isTaken ? job : null
    } catch (error) {
      unsure.add(job)
      throw error
    }
  }

  /** Takes up what was taken by a write that failed for this thread only: nobody else would. */
  async #findUnsure(unsure: Set<HeldJob>, taken: Job[]): Promise<void> {
    for (const job of unsure) {
      const version = await job.version(this.#collections.claimedJobs)
      unsure.delete(job)
      if (version !== undefined) taken.push(job)
    }
  }

  /** What was taken before the store failed has nobody else to work on it. @throws what failed, when nothing was */
  async #keepingTaken(taken: readonly Job[], take: () => Promise<void>): Promise<void> {
    try {
      await take()
    } catch (err) {
      if (taken.length === 0) throw err
      this.#log.warn({ err }, 'background work could not be taken')
    }
  }

  /** Says that this owner lives, before it has its first job and from then on. */
  async #prove(): Promise<void> {
    if (this.#renewal !== null) return
    await this.#renew()
    this.#renewal ??= setInterval(() => {
      this.#renew().catch((err: unknown) =>
        this.#log.warn({ err }, 'the lease of background work is not renewed'),
      )
    }, this.#leaseMs / RENEWALS)
    this.#renewal.unref()
  }

  #renew(): Promise<void> {
    const expiresAtMs = Date.now() + this.#leaseMs
    return this.#collections.jobOwners.put(GATEWAY_TENANT, this.#owner, 0, { expiresAtMs })
  }
}

/** @throws what one of them failed with, when all have settled and those that did not fail are added */
async function addAll(taking: readonly Promise<Job | null>[], jobs: Job[]): Promise<void> {
  for (const taken of await Promise.allSettled(taking))
    if (taken.status === 'fulfilled' && taken.value !== null) jobs.push(taken.value)
  await Promise.all(taking)
}
