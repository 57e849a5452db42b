/** Metrics of workers and of their circuit breakers: gauges from the worker table on control, counters on each thread. */
import {
  type BreakerState,
  type ConnectionMode,
  type CounterHandle,
  type MetricFamily,
  type Metrics,
  WORKER_STATUS_CODE,
  type WorkerBalance,
  type WorkerEntry,
  type WorkerType,
} from '#kernel'
import { type LabelLimit, OTHER } from '#shared'
import { LiveGauges } from './live-gauges.ts'

/** State of the workers, read at each scrape. */
interface WorkerSource extends Pick<WorkerBalance, 'inFlight' | 'status' | 'figures'> {
  readonly workers: readonly (Pick<WorkerEntry, 'slot' | 'url' | 'workerType' | 'connectionMode'> & {
    readonly models: readonly { readonly id: string }[]
  })[]
}

/** Labels of a picked worker. */
type SelectedWorker = Pick<WorkerEntry, 'workerType' | 'connectionMode'>

/** Picks of one policy among workers of one kind, for one model. */
interface Selection extends SelectedWorker {
  readonly policy: string
  readonly count: CounterHandle
}

const NONE: readonly Selection[] = []

/** Declares the worker metrics of one thread. */
export class WorkerMetrics {
  readonly #metrics: Metrics
  readonly #models: LabelLimit
  readonly #selections: MetricFamily<CounterHandle>
  readonly #errors: MetricFamily<CounterHandle>
  /** Few entries per model, so that searching a list is faster than building a joined key. */
  readonly #byModel = new Map<string, Selection[]>()

  /** @param models shared by all metrics with a `model` label, see `modelLabelLimit` */
  constructor(metrics: Metrics, models: LabelLimit) {
    this.#metrics = metrics
    this.#models = models
    this.#selections = metrics.counter({
      name: 'weir_worker_selection_total',
      help: 'Workers picked, by policy.',
      labels: ['worker_type', 'connection_mode', 'model', 'policy'],
    })
    this.#errors = metrics.counter({
      name: 'weir_worker_errors_total',
      help: 'Failed attempts at workers.',
      labels: ['worker_type', 'connection_mode', 'error_type'],
    })
  }

  /**
   * Sets the pool gauges at each scrape. Call on control only, because gauges of several threads are added up.
   * Removes series of removed workers.
   */
  watch(source: WorkerSource): void {
    const gauges = new LiveGauges(this.#metrics)
    const perWorker = (name: string, help: string) => gauges.declare(name, help, ['worker'])
    const poolSize = gauges.declare('weir_worker_pool_size', 'Registered workers.', [
      'worker_type',
      'connection_mode',
      'model',
    ])
    const connections = gauges.declare('weir_worker_connections_active', 'Open upstream requests.', [
      'worker_type',
      'connection_mode',
    ])
    const requests = perWorker('weir_worker_requests_active', 'Requests in flight to the worker.')
    const health = perWorker('weir_worker_health', '1 if the worker is ready, else 0.')
    const state = perWorker(
      'weir_worker_state',
      'State of the worker: 0 pending, 1 ready, 2 not ready, 3 failed, 4 draining, 5 drained.',
    )
    const failures = gauges.declare(
      'weir_worker_failures_total',
      'Failed attempts at the worker: answered with an error status, silent (no or an incomplete response), or unreachable.',
      ['worker', 'class'],
      'counter',
    )
    const failureShare = perWorker(
      'weir_worker_failure_ratio',
      'Share of recent attempts at the worker that failed; a moving average.',
    )
    const stalled = perWorker(
      'weir_worker_stalled',
      '1 if a stream waits for a byte and no stream of the worker receives any, else 0.',
    )
    const duration = perWorker(
      'weir_worker_duration_seconds',
      'Duration of successful attempts at the worker; a moving average.',
    )
    const firstByte = perWorker(
      'weir_worker_ttft_seconds',
      'Time from an attempt at the worker to the first byte of the response body; a moving average.',
    )
    gauges.onCollect(() => {
      for (const { slot, url, workerType, connectionMode, models } of source.workers) {
        // Wildcard workers list no model.
        const served = models.length === 0 ? ['unknown'] : models.map(({ id }) => id)
        for (const model of served) poolSize.add(1, workerType, connectionMode, this.#models.admit(model))
        const inFlight = source.inFlight(slot)
        connections.add(inFlight, workerType, connectionMode)
        requests.add(inFlight, url)
        const status = source.status(slot)
        health.add(status === 'ready' ? 1 : 0, url)
        state.add(WORKER_STATUS_CODE[status], url)
        const figures = source.figures(slot)
        for (const [fault, count] of Object.entries(figures.failures)) failures.add(count, url, fault)
        failureShare.add(figures.failureShare, url)
        stalled.add(figures.isStalled ? 1 : 0, url)
        if (figures.durationMs !== null) duration.add(figures.durationMs / 1000, url)
        if (figures.firstByteMs !== null) firstByte.add(figures.firstByteMs / 1000, url)
      }
    })
  }

  /**
   * A worker was picked.
   *
   * @param model canonical id, or `unknown`; `other` beyond 1,000 models
   * @param policy name of the policy, or `hook` if a hook picked
   */
  onSelection(worker: SelectedWorker, model: string, policy: string): void {
    for (const selection of this.#byModel.get(model) ?? NONE) {
      if (
        selection.policy === policy &&
        selection.workerType === worker.workerType &&
        selection.connectionMode === worker.connectionMode
      ) {
        selection.count.value += 1
        return
      }
    }
    this.#addSelection(worker, model, policy)
  }

  #addSelection(worker: SelectedWorker, model: string, policy: string): void {
    if (this.#models.admit(model) !== model) {
      this.onSelection(worker, OTHER, policy)
      return
    }
    const { workerType, connectionMode } = worker
    const count = this.#selections.labels(workerType, connectionMode, model, policy)
    count.value += 1
    const known = this.#byModel.get(model) ?? []
    known.push({ workerType, connectionMode, policy, count })
    this.#byModel.set(model, known)
  }

  /** @param errorType kind of the failure, such as `connect`, from a fixed set */
  onError(workerType: WorkerType, connectionMode: ConnectionMode, errorType: string): void {
    this.#errors.labels(workerType, connectionMode, errorType).inc()
  }
}

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
