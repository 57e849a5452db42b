/** Runs background responses: those of its own thread at once, and those that other threads or gateways left. */
import type { Job } from '#kernel'
import { CoalescedWork, FailureLog, RepeatedWork } from '#shared'
import type { StoredParts } from '../parts.ts'
import { leaveJob, retryUntilStopped } from './job-ends.ts'
import { RunningResponse } from './running-response.ts'
import { JOBS_KEY } from './signals.ts'

/** Polls between two searches for responses whose gateway is gone. */
const LOST_EVERY = 5
/** Interval of the check whether running responses were ended through another gateway. */
const END_LOOK_MS = 2_000

export class BackgroundRunner {
  readonly #parts: StoredParts
  readonly #running = new Set<RunningResponse>()
  /** Of those, how many each tenant has. */
  readonly #perTenant = new Map<string, number>()
  #round = 0
  readonly #claims = new CoalescedWork(() => this.#claim())
  readonly #polls: RepeatedWork
  readonly #queuedReads: FailureLog
  readonly #lostReads: FailureLog
  readonly #stopped = new AbortController()

  constructor(parts: StoredParts) {
    this.#parts = parts
    const { log } = parts.host
    this.#queuedReads = new FailureLog(log, 'queued background responses could not be read')
    this.#lostReads = new FailureLog(log, 'lost background responses could not be read')
    this.#polls = new RepeatedWork(async () => {
      this.#look()
      return parts.config.background.pollMs
    })
  }

  start(): void {
    this.#parts.jobs.subscribe(JOBS_KEY, () => this.poke())
    void this.#polls.start()
    // Only gateways that share a store can end responses of each other.
    if (this.#parts.history.isShared) void new RepeatedWork(() => this.#lookForEnds(), END_LOOK_MS).start()
  }

  /** Claims no more jobs; running ones may finish within the grace period. */
  stop(): void {
    this.#stopped.abort()
    void this.#polls.stop()
  }

  /** A job of a tenant waits. Other threads and gateways are notified if this thread cannot run it. */
  queued(tenant: string): void {
    const { maxRunning, maxRunningPerTenant } = this.#parts.config.background
    const isFull =
      this.#running.size >= maxRunning || (this.#perTenant.get(tenant) ?? 0) >= maxRunningPerTenant
    if (isFull || this.#parts.host.readinessReason() !== null) this.#parts.jobs.publish(JOBS_KEY, null)
    else this.poke()
  }

  /** Claims waiting jobs. */
  poke(): void {
    void this.#claims.run()
  }

  #look(): void {
    if (this.#parts.history.outage() !== null) return
    if (this.#round++ % LOST_EVERY === 0) void this.#claimLost()
    this.poke()
  }

  async #claim(): Promise<void> {
    try {
      const { maxRunning, maxRunningPerTenant } = this.#parts.config.background
      const free = maxRunning - this.#running.size
      // Until the workers are known, jobs would fail for lack of one.
      if (free <= 0 || this.#stopped.signal.aborted || this.#parts.host.readinessReason() !== null) return
      const jobs = await this.#parts.history.queue.claim(
        free,
        (tenant) => maxRunningPerTenant - (this.#perTenant.get(tenant) ?? 0),
      )
      for (const job of jobs) this.#begin(job)
      this.#queuedReads.succeeded()
    } catch (error) {
      this.#queuedReads.failed(error)
    }
  }

  async #claimLost(): Promise<void> {
    try {
      const jobs = await this.#parts.history.queue.claimLost(this.#parts.config.background.maxRunning)
      const hasLost = jobs.length > 0
      await retryUntilStopped(() => this.#leaveAll(jobs), this.#stopped.signal)
      if (hasLost) this.#parts.jobs.publish(JOBS_KEY, null)
      this.#lostReads.succeeded()
    } catch (error) {
      this.#lostReads.failed(error)
    }
  }

  /** Removes the jobs that it returned or failed from the list. @throws the error of the last other one */
  async #leaveAll(jobs: Job[]): Promise<void> {
    const failures: unknown[] = []
    for (const job of jobs.splice(0)) {
      try {
        await leaveJob(this.#parts, job)
      } catch (err) {
        jobs.push(job)
        failures.push(err)
      }
    }
    if (failures.length > 0) throw failures.at(-1)
  }

  #begin(job: Job): void {
    const running = new RunningResponse(this.#parts, job)
    this.#running.add(running)
    this.#perTenant.set(job.tenant, (this.#perTenant.get(job.tenant) ?? 0) + 1)
    const done = running
      .work()
      .catch((err: unknown) => {
        this.#parts.host.log.error({ err, response_id: job.responseId }, 'background response failed')
      })
      .then(() => this.#ended(running))
    this.#parts.host.background({ done, cancel: () => running.stop() })
  }

  #ended(running: RunningResponse): void {
    const { tenant } = running.job
    this.#running.delete(running)
    const left = (this.#perTenant.get(tenant) ?? 1) - 1
    if (left > 0) this.#perTenant.set(tenant, left)
    else this.#perTenant.delete(tenant)
    // At shutdown its job has been returned to the queue; it may end before this is stopped.
    if (this.#parts.host.isDraining) this.#parts.jobs.publish(JOBS_KEY, null)
    else this.poke()
  }

  /** At ends that another gateway has set, one after another. @returns the pause until the next round, milliseconds */
  async #lookForEnds(): Promise<number | null> {
    // Repeated in the next round if the store is unavailable.
    for (const running of this.#running) await running.endIfEnded().catch(() => undefined)
    return this.#stopped.signal.aborted && this.#running.size === 0 ? null : END_LOOK_MS
  }
}
