/** Metrics of circuit breakers: counters on each thread, gauges on control. */
import type { BreakerState, CounterHandle, MetricFamily, Metrics, WorkerBalance, WorkerEntry } from '#kernel'
import { LiveGauges } from './live-gauges.ts'

/** Number of each state in the `weir_worker_cb_state` gauge. */
const BREAKER_STATE_CODE: Readonly<Record<BreakerState, number>> = Object.freeze({
  closed: 0,
  open: 1,
  half_open: 2,
})

type BreakerWorker = Pick<WorkerEntry, 'slot' | 'id' | 'url'>

/** State of the breakers, read at each scrape. */
interface BreakerSource extends Pick<WorkerBalance, 'breakerState' | 'breakerRuns'> {
  readonly workers: readonly BreakerWorker[]
}

/** Outcomes of one worker on this thread; created when first counted. */
interface Series {
  readonly worker: BreakerWorker
  success: CounterHandle | null
  failure: CounterHandle | null
}

const STATES = Object.keys(BREAKER_STATE_CODE)

/** Declares the breaker metrics of one thread. */
export class BreakerMetrics {
  readonly #metrics: Metrics
  readonly #outcomes: MetricFamily<CounterHandle>
  readonly #transitions: MetricFamily<CounterHandle>
  readonly #bySlot: (Series | undefined)[] = []

  constructor(metrics: Metrics) {
    this.#metrics = metrics
    this.#outcomes = metrics.counter({
      name: 'weir_worker_cb_outcomes_total',
      help: 'Attempts, by outcome for the circuit breaker of the worker.',
      labels: ['worker', 'outcome'],
    })
    this.#transitions = metrics.counter({
      name: 'weir_worker_cb_transitions_total',
      help: 'State changes of the circuit breaker of the worker.',
      labels: ['worker', 'from', 'to'],
    })
  }

  /** Starts series of new workers and removes those of removed workers. */
  onWorkers(workers: readonly BreakerWorker[]): void {
    const ids = new Set(workers.map((worker) => worker.id))
    for (const [slot, series] of this.#bySlot.entries()) {
      if (series === undefined || ids.has(series.worker.id)) continue
      this.#drop(series)
      this.#bySlot[slot] = undefined
    }
    for (const worker of workers) {
      this.#bySlot[worker.slot] ??= { worker, success: null, failure: null }
    }
  }

  /** Counts an attempt; ignored if the worker was removed meanwhile. */
  onOutcome(worker: BreakerWorker, isSuccess: boolean): void {
    const series = this.#seriesOf(worker)
    if (series === undefined) return
    const { url } = series.worker
    if (isSuccess) {
      series.success ??= this.#outcomes.labels(url, 'success')
      series.success.value += 1
    } else {
      series.failure ??= this.#outcomes.labels(url, 'failure')
      series.failure.value += 1
    }
  }

  onTransition(worker: BreakerWorker, from: BreakerState, to: BreakerState): void {
    if (this.#seriesOf(worker) !== undefined) this.#transitions.labels(worker.url, from, to).inc()
  }

  /** Sets the gauges at each scrape. Call on control only, because gauges of several threads are added up. */
  watch(source: BreakerSource): void {
    const gauges = new LiveGauges(this.#metrics)
    const gauge = (name: string, help: string) => gauges.declare(name, help, ['worker'])
    const state = gauge(
      'weir_worker_cb_state',
      'State of the circuit breaker: 0 closed, 1 open, 2 half-open.',
    )
    const failures = gauge(
      'weir_worker_cb_consecutive_failures',
      'Consecutive failures; for an open breaker, those that opened it.',
    )
    const successes = gauge(
      'weir_worker_cb_consecutive_successes',
      'Consecutive successes of a half-open breaker.',
    )
    gauges.onCollect(() => {
      for (const { slot, url } of source.workers) {
        const runs = source.breakerRuns(slot)
        state.add(BREAKER_STATE_CODE[source.breakerState(slot)], url)
        failures.add(runs.failures, url)
        successes.add(runs.successes, url)
      }
    })
  }

  #seriesOf({ slot, id }: BreakerWorker): Series | undefined {
    const series = this.#bySlot[slot]
    return series?.worker.id === id ? series : undefined
  }

  #drop({ worker: { url } }: Series): void {
    for (const outcome of ['success', 'failure']) this.#outcomes.remove(url, outcome)
    for (const from of STATES) for (const to of STATES) this.#transitions.remove(url, from, to)
  }
}
