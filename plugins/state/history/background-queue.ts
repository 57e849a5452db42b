/**
 * The queue of background jobs. Waiting jobs are stored by tenant in order of age, claimed jobs by owner. An owner renews
 * one lease for all of its jobs.
 */
import { randomUUID } from 'node:crypto'
import {
  type BackgroundQueue,
  type Change,
  type Collection,
  GATEWAY_TENANT,
  type Job,
  type StoredRecord,
} from '#kernel'
import { countRecords, FailureLog, isUnreadableRecord } from '#shared'
import { deleteRange } from './change-list.ts'
import { type ClaimedJob, type HistoryParts, type WaitingJob, within } from './collections.ts'

/** Renewals per lease period. */
const RENEWALS = 3
const TENANTS = 100
/** Maximum waiting jobs of a tenant that one claim reads if the first ones are delayed, and in how many pages. */
const MAX_READ_JOBS = 1_000
const DELAYED_JOB_PAGES = 10

export class JobClaim implements Job {
  readonly tenant: string
  readonly responseId: string
  readonly attempts: number
  readonly #claimId: string

  constructor({ tenant, responseId, attempts }: ClaimedJob, owner: string) {
    this.tenant = tenant
    this.responseId = responseId
    this.attempts = attempts
    this.#claimId = `${owner}.${responseId}`
  }

  claiming({ name }: Collection<ClaimedJob>): Change {
    const { tenant, responseId, attempts } = this
    const value: ClaimedJob = { tenant, responseId, attempts }
    return { kind: 'put', collection: name, tenant: GATEWAY_TENANT, id: this.#claimId, value }
  }

  /** The change that removes the claim. @param onlyIf required version of the claim */
  ending({ name }: Collection<ClaimedJob>, onlyIf?: string): Change {
    return { kind: 'delete', collection: name, tenant: GATEWAY_TENANT, id: this.#claimId, onlyIf }
  }

  /** Version of the stored claim; undefined if there is none. */
  async version(claimedJobs: Collection<ClaimedJob>): Promise<string | undefined> {
    return (await claimedJobs.read(GATEWAY_TENANT, this.#claimId))?.version
  }
}

export class StoredQueue implements BackgroundQueue {
  readonly #parts: HistoryParts
  readonly #owner = randomUUID().replaceAll('-', '')
  #renewal: NodeJS.Timeout | null = null
  readonly #renewals: FailureLog
  /** Jobs whose claim failed with a store error, so that the write may have succeeded. */
  readonly #uncertain = { waiting: new Set<JobClaim>(), lost: new Set<JobClaim>() }
  /** Last tenant of the previous call, so that tenants are served round robin. */
  #lastTenant: string | undefined
  /** Until then, leases of running owners may have expired because the store was down. `Date.now()`, milliseconds. */
  #lostFromMs = 0

  constructor(parts: HistoryParts) {
    this.#parts = parts
    this.#renewals = new FailureLog(parts.log, 'lease of background jobs could not be renewed')
  }

  async claim(limit: number, capacity: (tenant: string) => number): Promise<Job[]> {
    await this.#ensureLease()
    const { waitingJobs } = this.#parts
    const claimed: Job[] = []
    await this.#keepClaimed(claimed, async () => {
      await this.#recoverUncertain(this.#uncertain.waiting, claimed)
      const tenants = await waitingJobs.tenants({ after: this.#lastTenant, limit: TENANTS })
      this.#lastTenant = tenants.length < TENANTS ? undefined : tenants.at(-1)
      for (const tenant of tenants) {
        const most = Math.min(limit - claimed.length, capacity(tenant))
        if (most <= 0) continue
        const ready = await this.#readyOf(tenant, most).catch((err: unknown) => {
          if (!isUnreadableRecord(err)) throw err
          this.#parts.log.error({ err, tenant }, 'background jobs of tenant could not be read')
          return []
        })
        const taken = ready.map(({ id, value: { attempts }, version }) => {
          const job = new JobClaim({ tenant, responseId: id, attempts }, this.#owner)
          const target = { collection: waitingJobs.name, tenant, id, onlyIf: version }
          return this.#take(job, { kind: 'delete', ...target }, this.#uncertain.waiting)
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

  async release(job: Job, delayMs = 0): Promise<void> {
    if (!(job instanceof JobClaim)) return
    const { waitingJobs, claimedJobs } = this.#parts
    const { tenant, responseId: id, attempts } = job
    const version = await job.version(claimedJobs)
    // Already returned by a write that reported an error, or claimed by another owner.
    if (version === undefined) return
    const value = { attempts: attempts + 1, ...(delayMs > 0 && { notBeforeMs: Date.now() + delayMs }) }
    const waiting: Change = { kind: 'put', collection: waitingJobs.name, tenant, id, value }
    await this.#parts.store.write([waiting, job.ending(claimedJobs, version)])
  }

  async discard(job: Job): Promise<void> {
    if (job instanceof JobClaim) await this.#parts.store.write([job.ending(this.#parts.claimedJobs)])
  }

  async claimLost(limit: number): Promise<Job[]> {
    if (Date.now() < this.#lostFromMs) return []
    await this.#ensureLease()
    const { claimedJobs, jobOwners } = this.#parts
    const lost: Job[] = []
    await this.#keepClaimed(lost, async () => {
      await this.#recoverUncertain(this.#uncertain.lost, lost)
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
          const job = new JobClaim({ ...value, attempts: value.attempts + 1 }, this.#owner)
          const target = { collection: claimedJobs.name, tenant: GATEWAY_TENANT, id, onlyIf: version }
          return this.#take(job, { kind: 'delete', ...target }, this.#uncertain.lost)
        })
        await addAll(taken, lost)
      }
    })
    return lost
  }

  waiting(tenant: string, limit: number): Promise<number> {
    return countRecords(this.#parts.waitingJobs, tenant, limit)
  }

  /** Ends the leases of all owners. Only for a store of one process, before its owners start. */
  async endLeases(): Promise<void> {
    await deleteRange(this.#parts.store, this.#parts.jobOwners, GATEWAY_TENANT)
  }

  /** Ends the lease, so that other threads can take the unfinished jobs. */
  async stop(): Promise<void> {
    if (this.#renewal === null) return
    clearInterval(this.#renewal)
    this.#renewal = null
    await this.#parts.jobOwners.delete(GATEWAY_TENANT, this.#owner).catch(() => undefined)
  }

  /** The oldest waiting jobs of a tenant that are not delayed, among the first MAX_READ_JOBS. */
  async #readyOf(tenant: string, most: number): Promise<StoredRecord<WaitingJob>[]> {
    const ready: StoredRecord<WaitingJob>[] = []
    const nowMs = Date.now()
    let looked = 0
    let after: string | undefined
    do {
      const limit = looked === 0 ? most : Math.max(most, MAX_READ_JOBS / DELAYED_JOB_PAGES)
      const page = await this.#parts.waitingJobs.range(tenant, { limit, after })
      for (const record of page.records)
        if (ready.length < most && (record.value.notBeforeMs ?? 0) <= nowMs) ready.push(record)
      looked += page.records.length
      after = page.next ?? undefined
    } while (after !== undefined && ready.length < most && looked < MAX_READ_JOBS)
    return ready
  }

  /** @param before removes the job from its collection @returns null if another owner has claimed it */
  async #take(job: JobClaim, before: Change, uncertain: Set<JobClaim>): Promise<Job | null> {
    try {
      const isTaken =
        (await this.#parts.store.write([before, job.claiming(this.#parts.claimedJobs)])) !== null
      return isTaken ? job : null
    } catch (error) {
      uncertain.add(job)
      throw error
    }
  }

  /** Recovers jobs whose claim reported an error but was stored. */
  async #recoverUncertain(uncertain: Set<JobClaim>, taken: Job[]): Promise<void> {
    for (const job of uncertain) {
      const version = await job.version(this.#parts.claimedJobs)
      uncertain.delete(job)
      if (version !== undefined) taken.push(job)
    }
  }

  /** Returns the jobs claimed before a store error. @throws the error if no job was claimed */
  async #keepClaimed(taken: readonly Job[], take: () => Promise<void>): Promise<void> {
    try {
      await take()
    } catch (err) {
      if (taken.length === 0) throw err
      this.#parts.log.warn({ err }, 'background jobs could not be claimed')
    }
  }

  /** Creates the lease of this owner before its first job, then renews it periodically. */
  async #ensureLease(): Promise<void> {
    if (this.#renewal !== null) return
    await this.#renew()
    this.#renewal ??= setInterval(() => {
      this.#renew().then(
        () => this.#renewals.succeeded(),
        (error: unknown) => this.#renewals.failed(error),
      )
    }, this.#parts.config.ownerLeaseMs / RENEWALS)
    this.#renewal.unref()
  }

  async #renew(): Promise<void> {
    const expiresAtMs = Date.now() + this.#parts.config.ownerLeaseMs
    try {
      await this.#parts.jobOwners.put(GATEWAY_TENANT, this.#owner, 0, { expiresAtMs })
    } catch (error) {
      this.#lostFromMs = Date.now() + this.#parts.config.ownerLeaseMs
      throw error
    }
  }
}

/** Adds the claimed jobs after all promises have settled. @throws the first rejection */
async function addAll(taking: readonly Promise<Job | null>[], jobs: Job[]): Promise<void> {
  for (const taken of await Promise.allSettled(taking))
    if (taken.status === 'fulfilled' && taken.value !== null) jobs.push(taken.value)
  await Promise.all(taking)
}
