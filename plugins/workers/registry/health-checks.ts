/** Watches registered workers: probes each at its interval, moves its status, and says which have failed for good. */
import type { CounterHandle, Logger, MetricFamily, WorkerBalance, WorkerStatus } from '#kernel'
import { type HealthView, NO_PROBES, observeProbe } from './health-state.ts'
import { MAX_DELAY_MS } from './pause.ts'
import type { Worker } from './worker.ts'

const MAX_CONCURRENT_PROBES = 128

/** A wait is the interval give or take this share of it, so that workers registered together drift apart. */
const JITTER = 0.1

/** Longest pause between probes of a worker that has failed; each is twice the one before. */
const MAX_FAILED_PAUSE_MS = 600_000

export interface HealthChecksParts {
  readonly balance: Pick<WorkerBalance, 'setStatus' | 'status'>
  /** The workers that share a worker's engine, and so its health; the first of them is the one to probe. */
  readonly engineOf: (worker: Worker) => readonly Worker[]
  readonly log: Logger
  /** Null when good, else why not, undefined when nobody could ask; must not throw. */
  readonly probe: (worker: Worker) => Promise<string | null | undefined>
  /** By worker type and result. */
  readonly counter: MetricFamily<CounterHandle>
  /** The worker has been away for long; it is still probed, ever more seldom, and comes back by itself. */
  readonly onFailed: (worker: Worker) => void
  /** Between 0 and 1. Default Math.random. */
  readonly random?: () => number
}

/** One worker under watch, at one revision: a change of the worker is a new watch, and results of old ones are void. */
interface Watch {
  readonly worker: Worker
  /** Status that the last probe left, with its counts. */
  view: HealthView
  timer: NodeJS.Timeout | null
}

export class HealthChecks {
  readonly #parts: HealthChecksParts
  readonly #watches = new Map<string, Watch>()
  readonly #due: Watch[] = []
  #running = 0

  constructor(parts: HealthChecksParts) {
    this.#parts = parts
  }

  /**
   * Begins to watch a worker and with it all of its engine, or goes on with its new revision; the first probe goes
   * out at once. Data-parallel ranks are watched through rank 0.
   */
  watch(worker: Worker): void {
    const status = this.#status(worker)
    const view = this.#watches.get(worker.id)?.view ?? { status, counts: NO_PROBES }
    this.unwatch(worker.id)
    if (worker.health.isDisabled || status === 'draining') return
    const watch: Watch = { worker, view, timer: null }
    this.#watches.set(worker.id, watch)
    this.#enqueue(watch)
  }

  unwatch(id: string): void {
    const watch = this.#watches.get(id)
    if (watch === undefined) return
    this.#watches.delete(id)
    if (watch.timer !== null) clearTimeout(watch.timer)
  }

  stop(): void {
    for (const id of [...this.#watches.keys()]) this.unwatch(id)
  }

  #status(worker: Worker): WorkerStatus {
    return this.#parts.balance.status(worker.entry.slot)
  }

  #isCurrent(watch: Watch): boolean {
    return this.#watches.get(watch.worker.id) === watch
  }

  #enqueue(watch: Watch): void {
    this.#due.push(watch)
    this.#probeNext()
  }

  #probeNext(): void {
    while (this.#running < MAX_CONCURRENT_PROBES) {
      const watch = this.#due.shift()
      if (watch === undefined) return
      if (this.#isCurrent(watch)) void this.#probe(watch)
    }
  }

  async #probe(watch: Watch): Promise<void> {
    this.#running += 1
    const problem = await this.#parts.probe(watch.worker)
    this.#running -= 1
    const result = problem === undefined ? 'skipped' : problem === null ? 'success' : 'failure'
    this.#parts.counter.labels(watch.worker.spec.workerType, result).inc()
    if (this.#isCurrent(watch)) {
      if (problem === undefined) this.#wait(watch, watch.view)
      else this.#apply(watch, problem)
    }
    this.#probeNext()
  }

  #apply(watch: Watch, problem: string | null): void {
    const { worker } = watch
    const status = this.#status(worker)
    // A status that somebody else has set begins its counts anew.
    const view = watch.view.status === status ? watch.view : { status, counts: NO_PROBES }
    const next = observeProbe(view, problem === null, worker.health)
    watch.view = next
    if (next.status !== status) this.#move(worker, status, next.status, problem)
    if (next.status === 'draining') this.unwatch(worker.id)
    // Whoever was told may have taken the worker out.
    if (this.#isCurrent(watch)) this.#wait(watch, next)
  }

  #wait(watch: Watch, view: HealthView): void {
    const random = (this.#parts.random ?? Math.random)()
    const waitMs = pauseMs(view, watch.worker.health.intervalSecs * 1000) * (1 + JITTER * (2 * random - 1))
    watch.timer = setTimeout(() => this.#enqueue(watch), Math.min(waitMs, MAX_DELAY_MS)).unref()
  }

  #move(worker: Worker, from: WorkerStatus, to: WorkerStatus, problem: string | null): void {
    for (const { entry } of this.#parts.engineOf(worker)) this.#parts.balance.setStatus(entry.slot, to)
    const fields = { worker: worker.spec.url, from, to, reason: problem }
    if (to === 'ready') this.#parts.log.info(fields, 'worker is healthy')
    else this.#parts.log.warn(fields, 'worker is not healthy')
    if (to === 'failed') this.#parts.onFailed(worker)
  }
}

/** A failed worker that has answered well is looked at again at its interval. */
function pauseMs({ status, counts }: HealthView, intervalMs: number): number {
  if (status !== 'failed') return intervalMs
  return Math.max(intervalMs, Math.min(MAX_FAILED_PAUSE_MS, intervalMs * 2 ** counts.failures))
}
