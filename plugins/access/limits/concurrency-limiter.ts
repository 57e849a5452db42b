/** Admits requests of one thread by the concurrency limit, or by the priority scheduler if it is enabled. */
import { type RequestContext, retryAfter } from '#kernel'
import type { LimitsConfig } from './config.ts'
import { limitsErrors } from './errors.ts'
import type { LimitsMetrics } from './limits-metrics.ts'
import type { PermitQueue, QueueEntry, WaitOutcome } from './permits/permit-queue.ts'
import type { Reservation } from './rates/tenant-limiter.ts'
import { tenantOf } from './rates/tenant-name.ts'
import { PRIORITIES } from './scheduler/scheduler-config.ts'
import { type EntryOwner, SchedulerEntry } from './scheduler/scheduler-entry.ts'
import type { ScheduleOutcome, SchedulerMetrics } from './scheduler/scheduler-metrics.ts'
import type { SchedulerQueue } from './scheduler/scheduler-queue.ts'
import { findPriority, MaxClasses } from './scheduler/scheduler-rules.ts'

export const PRIORITY_HEADERS = ['x-weir-priority', 'x-smg-priority'] as const
const DEFAULT_PRIORITY = PRIORITIES.indexOf('default')
/** The end of a running request is not known in advance, so the shortest delay is returned. */
export const RETRY_SOON = retryAfter(1)

const OUTCOMES: Readonly<Record<WaitOutcome, ScheduleOutcome>> = Object.freeze({
  entered: 'admitted',
  timed_out: 'rejected_queue_timeout',
  left: 'client_cancelled',
})

const PREEMPTED_HEADERS: readonly string[] = Object.freeze([
  'retry-after',
  '1',
  'x-weir-preempted',
  'true',
  'x-smg-preempted',
  'true',
])

/** What one request holds from admission to its end: reservation, queue entry, permit, slot. */
export class AdmissionState implements EntryOwner {
  reservation: Reservation | null = null
  /** Row of the running requests of its tenant; -1 if they are not counted. */
  runningRow = -1
  /** True if a token limit applied when the request was admitted. */
  settlesTokens = false
  /** Rate limits from which a request was taken. */
  ratesTaken = 0
  /** True while control is asked for tokens. */
  isAsking = false
  /** Set while the request waits. */
  queueEntry: QueueEntry | null = null
  hasPermit = false
  scheduled: SchedulerEntry | null = null
  /** Ends the wait for the scheduler. */
  endWait: ((outcome: WaitOutcome) => void) | null = null
  isOver = false
  readonly #ctx: RequestContext

  constructor(ctx: RequestContext) {
    this.#ctx = ctx
  }

  isPreemptible(): boolean {
    return this.#ctx.firstByteAtMs === 0 && !this.#ctx.isDone
  }

  onAdmitted(): void {
    this.endWait?.('entered')
  }

  onTimedOut(): void {
    this.endWait?.('timed_out')
  }

  onPreempted(by: number): void {
    this.#ctx.fail(limitsErrors.scheduler_preempted.with({ headers: PREEMPTED_HEADERS }, PRIORITIES[by]))
  }
}

export interface ConcurrencyLimiterParts {
  readonly permits: PermitQueue
  readonly scheduler: SchedulerQueue
  readonly metrics: LimitsMetrics
  readonly schedulerMetrics: SchedulerMetrics
}

export class ConcurrencyLimiter {
  readonly #parts: ConcurrencyLimiterParts
  #settings: LimitsConfig
  #maxClasses: MaxClasses

  constructor(parts: ConcurrencyLimiterParts, settings: LimitsConfig) {
    this.#parts = parts
    this.#settings = settings
    this.#maxClasses = new MaxClasses(settings.scheduler)
  }

  setLimits(settings: LimitsConfig): void {
    const { permits, scheduler } = this.#parts
    this.#settings = settings
    this.#maxClasses = new MaxClasses(settings.scheduler)
    permits.setLimits(settings)
    if (!settings.scheduler.enabled) scheduler.close()
  }

  /**
   * Admits the request at once or when the promise resolves.
   *
   * @throws queue_full, scheduler_queue_full (429); queue_timeout, scheduler_queue_timeout (408)
   */
  enter(ctx: RequestContext, state: AdmissionState): undefined | Promise<undefined> {
    if (this.#settings.scheduler.enabled) return this.#schedule(ctx, state)
    if (this.#settings.maxConcurrentRequests > 0) return this.#takePermit(state)
  }

  /** Releases what the request holds; idempotent. */
  leave(state: AdmissionState): void {
    state.queueEntry?.leave()
    state.queueEntry = null
    if (state.scheduled !== null) this.#parts.scheduler.end(state.scheduled)
    state.scheduled = null
    if (state.hasPermit) this.#parts.permits.release()
    state.hasPermit = false
  }

  #takePermit(state: AdmissionState): undefined | Promise<undefined> {
    const { permits, metrics } = this.#parts
    const entered = permits.enter()
    if (entered === true) {
      state.hasPermit = true
      return
    }
    const { maxConcurrentRequests, queueSize, queueTimeoutMs } = this.#settings
    if (entered === false) throw limitsErrors.queue_full.with(RETRY_SOON, maxConcurrentRequests, queueSize)
    return this.#wait(state, entered, (outcome, waitedMs) => {
      metrics.waited(waitedMs)
      if (outcome === 'left') return
      if (outcome === 'timed_out') throw limitsErrors.queue_timeout(queueTimeoutMs)
      state.hasPermit = true
    })
  }

  #schedule(ctx: RequestContext, state: AdmissionState): undefined | Promise<undefined> {
    const { scheduler, schedulerMetrics } = this.#parts
    const priority = this.#priorityOf(ctx)
    const { queueSize, queueTimeoutMs } = this.#settings.scheduler.classes[PRIORITIES[priority]]
    const entry = new SchedulerEntry(priority, state)
    const result = scheduler.enter(entry)
    if (result === 'full') {
      schedulerMetrics.outcome(priority, 'rejected_queue_full')
      throw limitsErrors.scheduler_queue_full.with(RETRY_SOON, PRIORITIES[priority], queueSize)
    }
    state.scheduled = entry
    if (result === 'admitted') {
      schedulerMetrics.outcome(priority, 'admitted')
      return
    }
    const { promise, resolve } = Promise.withResolvers<WaitOutcome>()
    state.endWait = resolve
    const leave = () => {
      scheduler.end(entry)
      resolve('left')
    }
    return this.#wait(state, { outcome: promise, leave }, (outcome, waitedMs) => {
      schedulerMetrics.waited(priority, waitedMs)
      schedulerMetrics.outcome(priority, OUTCOMES[outcome])
      if (outcome === 'timed_out')
        throw limitsErrors.scheduler_queue_timeout(PRIORITIES[priority], queueTimeoutMs)
    })
  }

  /** Returns without an error for a request that ended while it waited. */
  async #wait(
    state: AdmissionState,
    entry: QueueEntry,
    onEnd: (outcome: WaitOutcome, waitedMs: number) => void,
  ): Promise<undefined> {
    const sinceMs = performance.now()
    state.queueEntry = entry
    const outcome = await entry.outcome
    state.queueEntry = null
    onEnd(outcome, performance.now() - sinceMs)
    // The request may have ended between its admission and this continuation.
    if (state.isOver) this.leave(state)
  }

  #priorityOf(ctx: RequestContext): number {
    const { schedulerMetrics } = this.#parts
    const { tenants, scheduler } = this.#settings
    const tenant = tenantOf(ctx, tenants)
    const name = ctx.header(PRIORITY_HEADERS[0]) ?? ctx.header(PRIORITY_HEADERS[1])
    const requested = name === undefined ? DEFAULT_PRIORITY : findPriority(name)
    if (requested === undefined) schedulerMetrics.unknownPriority(tenant, scheduler.tenantMetricLimit)
    const wanted = requested ?? DEFAULT_PRIORITY
    const effective = Math.max(wanted, this.#maxClasses.of(tenant))
    if (effective !== wanted) schedulerMetrics.clamped(tenant, wanted, effective, scheduler.tenantMetricLimit)
    return effective
  }
}
