/** Probes registered workers at their intervals, changes their status, and reports workers that have failed. */
import {
  type CounterHandle,
  Interval,
  type Logger,
  MAX_TIMER_MS,
  type MetricFamily,
  type WorkerBalance,
  type WorkerStatus,
} from '#kernel'
import { Limiter } from '#shared'
import { healthyStatus, isHealthy, type Worker } from './worker.ts'

const MAX_CONCURRENT_PROBES = 128

/** Share of the interval by which a wait varies, so that workers registered together are probed at different times. */
const JITTER = 0.1

/** Interval between probes of a worker that is not ready or has failed a probe, milliseconds. */
const FAST_PAUSE_MS = 500
/** Interval between probes of a worker that has failed, milliseconds: two successes make it ready within three seconds. */
const FAILED_PAUSE_MS = 2_000
/** Interval at which workers whose requests fail are looked for, milliseconds. */
const REQUEST_CHECK_MS = 500
/** Rejected requests in a row after which a worker is probed: its engine may not be the one that it was. */
const SUSPICIOUS_REFUSALS = 3

export interface HealthChecksParts {
  readonly balance: Pick<
    WorkerBalance,
    'setStatus' | 'status' | 'breakerState' | 'breakerRuns' | 'refusals' | 'misnamedAnswers' | 'recovered'
  >
  /** The workers that share a worker's engine, and therefore its health; the first one is probed. */
  readonly engineOf: (worker: Worker) => readonly Worker[]
  readonly log: Logger
  /** Null for success, else the reason of the failure; undefined if no probe could be sent. Must not throw. */
  readonly probe: (worker: Worker) => Promise<string | null | undefined>
  /** By worker type and result. */
  readonly counter: MetricFamily<CounterHandle>
  /** The worker has failed for long. It is still probed, and can become ready again. */
  readonly onFailed: (worker: Worker) => void
  /** Between 0 and 1. Default Math.random. */
  readonly random?: () => number
}

/** One worker at one revision. A changed worker gets a new watch, and results of the old one are ignored. */
interface Watch {
  readonly worker: Worker
  /** Status and counts after the last probe. */
  view: HealthView
  /** `performance.now()` of the last failed probe that counted. */
  countedAtMs: number
  /** Why the last probe failed; null if it did not. */
  problem: string | null
  /** Its last requests have failed, and have caused a probe. */
  isFailing: boolean
  /** Answers that named another model, up to the last probe that they have caused. */
  misnamedAnswers: number
  timer: NodeJS.Timeout | null
}

export class HealthChecks {
  readonly #parts: HealthChecksParts
  readonly #watches = new Map<string, Watch>()
  readonly #limiter = new Limiter(MAX_CONCURRENT_PROBES)
  readonly #requestChecks = new Interval(REQUEST_CHECK_MS, () => this.#probeFailing())

  constructor(parts: HealthChecksParts) {
    this.#parts = parts
  }

  /**
   * Starts to probe a worker for its whole engine, or continues with its new revision. The first probe is sent at
   * once. Data-parallel ranks are probed through rank 0.
   */
  watch(worker: Worker): void {
    const status = this.#status(worker)
    const view = this.#watches.get(worker.id)?.view ?? { status, counts: NO_PROBES }
    this.unwatch(worker.id)
    if (worker.health.isDisabled || status === 'draining') return
    const watch: Watch = {
      worker,
      view,
      countedAtMs: Number.NEGATIVE_INFINITY,
      problem: null,
      isFailing: false,
      misnamedAnswers: this.#parts.balance.misnamedAnswers(worker.entry.slot),
      timer: null,
    }
    this.#watches.set(worker.id, watch)
    this.#requestChecks.start()
    this.#enqueue(watch)
  }

  /** Why the last probe of the worker's engine failed; null if it did not. */
  problemOf(worker: Worker): string | null {
    const [first] = this.#parts.engineOf(worker)
    return this.#watches.get(first?.id ?? worker.id)?.problem ?? null
  }

  unwatch(id: string): void {
    const watch = this.#watches.get(id)
    if (watch === undefined) return
    this.#watches.delete(id)
    if (watch.timer !== null) clearTimeout(watch.timer)
  }

  stop(): void {
    this.#requestChecks.stop()
    for (const id of [...this.#watches.keys()]) this.unwatch(id)
  }

  #status(worker: Worker): WorkerStatus {
    return this.#parts.balance.status(worker.entry.slot)
  }

  #isCurrent(watch: Watch): boolean {
    return this.#watches.get(watch.worker.id) === watch
  }

  /**
   * Requests fail, are all rejected or are answered for another model before the next probe is due: the engine may be down, or
   * another one by now.
   */
  #probeFailing(): void {
    const { balance } = this.#parts
    for (const watch of this.#watches.values()) {
      const { slot } = watch.worker.entry
      const isFailing =
        balance.breakerState(slot) === 'open' ||
        balance.breakerRuns(slot).failures > 0 ||
        balance.refusals(slot) >= SUSPICIOUS_REFUSALS
      const misnamedAnswers = balance.misnamedAnswers(slot)
      const isSuspicious = (isFailing && !watch.isFailing) || misnamedAnswers !== watch.misnamedAnswers
      if (isSuspicious && watch.timer !== null) {
        clearTimeout(watch.timer)
        this.#enqueue(watch)
      }
      watch.isFailing = isFailing
      watch.misnamedAnswers = misnamedAnswers
    }
  }

  #enqueue(watch: Watch): void {
    watch.timer = null
    void this.#limiter.run(async () => {
      if (this.#isCurrent(watch)) await this.#probe(watch)
    })
  }

  async #probe(watch: Watch): Promise<void> {
    const problem = await this.#parts.probe(watch.worker)
    const result = problem === undefined ? 'skipped' : problem === null ? 'success' : 'failure'
    this.#parts.counter.labels(watch.worker.spec.workerType, result).inc()
    if (!this.#isCurrent(watch)) return
    if (problem === undefined) this.#wait(watch, watch.view)
    else this.#apply(watch, problem)
  }

  #apply(watch: Watch, problem: string | null): void {
    const { worker } = watch
    watch.problem = problem
    const status = this.#status(worker)
    // The status was changed elsewhere: counts start again.
    const view = watch.view.status === status ? watch.view : { status, counts: NO_PROBES }
    const next = this.#isEarlyFailure(watch, status, problem)
      ? { status, counts: { ...view.counts, successes: 0 } }
      : observeProbe(view, problem === null, worker.health, healthyStatus(worker))
    watch.view = next
    if (next.status !== status) this.#move(worker, status, next.status, problem)
    // Its breaker would keep requests away until the time that it opens for is over.
    const hasRecovered = isHealthy(next.status) && (!isHealthy(status) || view.counts.failures > 0)
    if (problem === null && hasRecovered)
      for (const { entry } of this.#parts.engineOf(worker)) this.#parts.balance.recovered(entry)
    if (next.status === 'draining') this.unwatch(worker.id)
    // onFailed may have removed the worker.
    if (this.#isCurrent(watch)) this.#wait(watch, next)
  }

  /** Failures between two intervals do not count towards the status failed, which is a matter of time. */
  #isEarlyFailure(watch: Watch, status: WorkerStatus, problem: string | null): boolean {
    if (problem === null) return false
    const nowMs = performance.now()
    const leastMs = watch.worker.health.intervalSecs * 1000 * (1 - JITTER)
    if (!isHealthy(status) && nowMs - watch.countedAtMs < leastMs) return true
    watch.countedAtMs = nowMs
    return false
  }

  #wait(watch: Watch, view: HealthView): void {
    const random = (this.#parts.random ?? Math.random)()
    const waitMs = pauseMs(view, watch.worker.health.intervalSecs * 1000) * (1 + JITTER * (2 * random - 1))
    watch.timer = setTimeout(() => this.#enqueue(watch), Math.min(waitMs, MAX_TIMER_MS)).unref()
  }

  #move(worker: Worker, from: WorkerStatus, to: WorkerStatus, problem: string | null): void {
    for (const { entry } of this.#parts.engineOf(worker)) this.#parts.balance.setStatus(entry.slot, to)
    const fields = { worker: worker.spec.url, from, to, reason: problem }
    if (isHealthy(to)) this.#parts.log.info(fields, 'worker healthy')
    else this.#parts.log.warn(fields, 'worker unhealthy')
    if (to === 'failed') this.#parts.onFailed(worker)
  }
}

/** A worker that is not ready or has failed a probe is probed often. */
function pauseMs({ status, counts }: HealthView, intervalMs: number): number {
  if (isHealthy(status) && counts.failures === 0) return intervalMs
  const isFailed = status === 'failed' && counts.successes === 0
  return Math.min(intervalMs, isFailed ? FAILED_PAUSE_MS : FAST_PAUSE_MS)
}

/** Probes since the last change of status. */
export interface HealthCounts {
  /** Successful probes in a row. */
  readonly successes: number
  /** Failed probes in a row. */
  readonly failures: number
  /** All probes. */
  readonly probes: number
}

export interface HealthView {
  readonly status: WorkerStatus
  readonly counts: HealthCounts
}

export interface HealthThresholds {
  readonly successThreshold: number
  readonly failureThreshold: number
}

export const NO_PROBES: HealthCounts = Object.freeze({ successes: 0, failures: 0, probes: 0 })

/** Probes without readiness, as a multiple of the failure threshold, after which a new worker has failed. */
const PENDING_PROBES_FACTOR = 10
/** Failed probes in a row, as a multiple of the failure threshold, after which a worker that was ready has failed. */
const NOT_READY_FAILURES_FACTOR = 3

/**
 * Applies one probe result. Counts start again with each change of status; a draining worker keeps its status.
 *
 * @param healthy status of the worker while it is healthy
 */
export function observeProbe(
  view: HealthView,
  isGood: boolean,
  thresholds: HealthThresholds,
  healthy: 'ready' | 'drained' = 'ready',
): HealthView {
  const { status } = view
  if (status === 'draining') return view
  const counts = {
    successes: isGood ? view.counts.successes + 1 : 0,
    failures: isGood ? 0 : view.counts.failures + 1,
    probes: view.counts.probes + 1,
  }
  const next = nextStatus(status, counts, thresholds, healthy)
  return next === status ? { status, counts } : { status: next, counts: NO_PROBES }
}

function nextStatus(
  status: Exclude<WorkerStatus, 'draining'>,
  counts: HealthCounts,
  { successThreshold, failureThreshold }: HealthThresholds,
  healthy: 'ready' | 'drained',
): WorkerStatus {
  if (isHealthy(status)) return counts.failures >= failureThreshold ? 'not_ready' : healthy
  if (counts.successes >= successThreshold) return healthy
  if (status === 'failed') return 'failed'
  const hasFailed =
    status === 'pending'
      ? counts.probes >= PENDING_PROBES_FACTOR * failureThreshold
      : counts.failures >= NOT_READY_FAILURES_FACTOR * failureThreshold
  return hasFailed ? 'failed' : status
}
