/** Lets requests run: through the gate, or through the scheduler where that is on. One for each thread. */
import type { RequestContext } from '#kernel'
import type { LimitsConfig } from './config.ts'
import { limitsErrors, retryAfter } from './errors.ts'
import type { GateQueue } from './gate-queue.ts'
import type { LimitsMetrics } from './limits-metrics.ts'
import { PRIORITIES } from './scheduler-config.ts'
import type { ScheduleOutcome, SchedulerMetrics } from './scheduler-metrics.ts'
import type { SchedulerQueue } from './scheduler-queue.ts'
import { findPriority, MaxClasses } from './scheduler-rules.ts'
import type { Stay } from './stay.ts'
import { tenantOf } from './tenant-name.ts'
import type { Waiting, WaitOutcome } from './waiting.ts'

export const PRIORITY_HEADERS = ['x-weir-priority', 'x-smg-priority'] as const
const DEFAULT_PRIORITY = PRIORITIES.indexOf('default')
/** A guess: nobody knows when a request ends. */
const RETRY_SOON = retryAfter(1)

const OUTCOMES: Readonly<Record<WaitOutcome, ScheduleOutcome>> = Object.freeze({
  entered: 'admitted',
  timed_out: 'rejected_queue_timeout',
  left: 'client_cancelled',
})

export interface TurnstileParts {
  readonly gate: GateQueue
  readonly queue: SchedulerQueue
  readonly metrics: LimitsMetrics
  readonly schedulerMetrics: SchedulerMetrics
}

export class Turnstile {
  readonly #parts: TurnstileParts
  #settings: LimitsConfig
  #maxClasses: MaxClasses

  constructor(parts: TurnstileParts, settings: LimitsConfig) {
    this.#parts = parts
    this.#settings = settings
    this.#maxClasses = new MaxClasses(settings.scheduler)
  }

  setLimits(settings: LimitsConfig): void {
    const { gate, queue } = this.#parts
    this.#settings = settings
    this.#maxClasses = new MaxClasses(settings.scheduler)
    gate.setLimits(settings)
    if (!settings.scheduler.enabled) queue.close()
  }

  /**
   * The request runs when this returns, or when the promise resolves.
   *
   * @throws queue_full, scheduler_queue_full (429); queue_timeout, scheduler_queue_timeout (408)
   */
  enter(ctx: RequestContext, stay: Stay): undefined | Promise<undefined> {
    if (this.#settings.scheduler.enabled) return this.#schedule(ctx, stay)
    if (this.#settings.maxConcurrentRequests > 0) return this.#enterGate(stay)
  }

  /** Gives back whatever the request holds; safe to call twice. */
  leave(stay: Stay): void {
    stay.waiting?.leave()
    stay.waiting = null
    if (stay.scheduled !== null) this.#parts.queue.end(stay.scheduled.turn)
    stay.scheduled = null
    if (stay.hasPermit) this.#parts.gate.release()
    stay.hasPermit = false
  }

  #enterGate(stay: Stay): undefined | Promise<undefined> {
    const { gate, metrics } = this.#parts
    const answer = gate.enter()
    if (answer === true) {
      stay.hasPermit = true
      return
    }
    const { maxConcurrentRequests, queueSize, queueTimeoutMs } = this.#settings
    if (answer === false) throw limitsErrors.queue_full.with(RETRY_SOON, maxConcurrentRequests, queueSize)
    return this.#wait(stay, answer, (outcome, waitedMs) => {
      metrics.waited(waitedMs)
      if (outcome === 'left') return
      if (outcome === 'timed_out') throw limitsErrors.queue_timeout(queueTimeoutMs)
      stay.hasPermit = true
    })
  }

  #schedule(ctx: RequestContext, stay: Stay): undefined | Promise<undefined> {
    const { queue, schedulerMetrics } = this.#parts
    const priority = this.#priorityOf(ctx)
    const { queueSize, queueTimeoutMs } = this.#settings.scheduler.classes[PRIORITIES[priority]]
    const scheduled = queue.enter(priority, stay)
    if (scheduled === null) {
      schedulerMetrics.outcome(priority, 'rejected_queue_full')
      throw limitsErrors.scheduler_queue_full.with(RETRY_SOON, PRIORITIES[priority], queueSize)
    }
    stay.scheduled = scheduled
    if (scheduled.turn.state === 'running') {
      schedulerMetrics.outcome(priority, 'admitted')
      return
    }
    return this.#wait(stay, scheduled, (outcome, waitedMs) => {
      schedulerMetrics.waited(priority, waitedMs)
      schedulerMetrics.outcome(priority, OUTCOMES[outcome])
      if (outcome === 'timed_out')
        throw limitsErrors.scheduler_queue_timeout(PRIORITIES[priority], queueTimeoutMs)
    })
  }

  /** A request that left while it waited is told nothing: its reply is over. */
  async #wait(
    stay: Stay,
    waiting: Waiting,
    onEnd: (outcome: WaitOutcome, waitedMs: number) => void,
  ): Promise<undefined> {
    const sinceMs = performance.now()
    stay.waiting = waiting
    const outcome = await waiting.outcome
    stay.waiting = null
    onEnd(outcome, performance.now() - sinceMs)
    // It left in the moment between being let in and hearing of it.
    if (stay.isOver) this.leave(stay)
  }

  #priorityOf(ctx: RequestContext): number {
    const { schedulerMetrics } = this.#parts
    const { tenants, scheduler } = this.#settings
    const tenant = tenantOf(ctx, tenants)
    const word = ctx.header(PRIORITY_HEADERS[0]) ?? ctx.header(PRIORITY_HEADERS[1])
    const asked = word === undefined ? DEFAULT_PRIORITY : findPriority(word)
    if (asked === undefined) schedulerMetrics.unknownWord(tenant, scheduler.tenantMetricLimit)
    const wanted = asked ?? DEFAULT_PRIORITY
    const given = Math.max(wanted, this.#maxClasses.of(tenant))
    if (given !== wanted) schedulerMetrics.clamped(tenant, wanted, given, scheduler.tenantMetricLimit)
    return given
  }
}
