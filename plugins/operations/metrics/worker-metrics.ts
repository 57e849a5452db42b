/** Metrics of workers: gauges from the worker table on control, counters on each thread. */
import type { CounterHandle, GaugeHandle, MetricFamily, Metrics, WorkerFigures } from '#kernel'
import {
  type ConnectionMode,
  labelKey,
  WORKER_STATUS_CODE,
  type WorkerStatus,
  type WorkerType,
} from '#kernel'
import { type LabelLimit, OTHER } from '#shared'

/** A registered worker at the time of a scrape. */
export interface WorkerSample {
  /** As registered; the `worker` label. */
  readonly url: string
  readonly workerType: WorkerType
  readonly connectionMode: ConnectionMode
  /** Ids of the served models; empty for a wildcard worker, which is counted as `unknown`. */
  readonly models: readonly string[]
  /** Requests in flight over all threads. */
  readonly inFlight: number
  readonly status: WorkerStatus
  readonly figures: WorkerFigures
}

/** Failure kind such as `connect` or `idle_timeout`, from a fixed set. */
export type WorkerErrorType = string

/** Labels of a picked worker. */
export interface SelectedWorker {
  readonly workerType: WorkerType
  readonly connectionMode: ConnectionMode
}

/** Picks of one policy among workers of one kind, for one model. */
interface Selection extends SelectedWorker {
  readonly policy: string
  readonly count: CounterHandle
}

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
  watch(workers: () => Iterable<WorkerSample>): void {
    const poolSize = new LiveGauge(this.#metrics, 'weir_worker_pool_size', 'Registered workers.', [
      'worker_type',
      'connection_mode',
      'model',
    ])
    const connections = new LiveGauge(
      this.#metrics,
      'weir_worker_connections_active',
      'Open upstream requests.',
      ['worker_type', 'connection_mode'],
    )
    const requests = new LiveGauge(
      this.#metrics,
      'weir_worker_requests_active',
      'Requests in flight to the worker.',
      ['worker'],
    )
    const health = new LiveGauge(this.#metrics, 'weir_worker_health', '1 if the worker is ready, else 0.', [
      'worker',
    ])
    const state = new LiveGauge(
      this.#metrics,
      'weir_worker_state',
      'State of the worker: 0 pending, 1 ready, 2 not ready, 3 failed, 4 draining.',
      ['worker'],
    )
    const failures = new LiveGauge(
      this.#metrics,
      'weir_worker_failures_total',
      'Failed attempts at the worker: answered with an error status, silent (no or an incomplete response), or unreachable.',
      ['worker', 'class'],
      'counter',
    )
    const failureShare = new LiveGauge(
      this.#metrics,
      'weir_worker_failure_ratio',
      'Share of recent attempts at the worker that failed; a moving average.',
      ['worker'],
    )
    const stalled = new LiveGauge(
      this.#metrics,
      'weir_worker_stalled',
      '1 if a stream waits for a byte and no stream of the worker receives any, else 0.',
      ['worker'],
    )
    const duration = new LiveGauge(
      this.#metrics,
      'weir_worker_duration_seconds',
      'Duration of successful attempts at the worker; a moving average.',
      ['worker'],
    )
    const firstByte = new LiveGauge(
      this.#metrics,
      'weir_worker_ttft_seconds',
      'Time from an attempt at the worker to the first byte of the response body; a moving average.',
      ['worker'],
    )
    const gauges = [
      poolSize,
      connections,
      requests,
      health,
      state,
      failures,
      failureShare,
      stalled,
      duration,
      firstByte,
    ]
    this.#metrics.onCollect(() => {
      for (const gauge of gauges) gauge.begin()
      for (const worker of workers()) {
        const { workerType, connectionMode, url } = worker
        const models = worker.models.length === 0 ? ['unknown'] : worker.models
        for (const model of models) poolSize.add(1, workerType, connectionMode, this.#models.admit(model))
        connections.add(worker.inFlight, workerType, connectionMode)
        requests.add(worker.inFlight, url)
        health.add(worker.status === 'ready' ? 1 : 0, url)
        state.add(WORKER_STATUS_CODE[worker.status], url)
        const { figures } = worker
        for (const [fault, count] of Object.entries(figures.failures)) failures.add(count, url, fault)
        failureShare.add(figures.failureShare, url)
        stalled.add(figures.isStalled ? 1 : 0, url)
        if (figures.durationMs !== null) duration.add(figures.durationMs / 1000, url)
        if (figures.firstByteMs !== null) firstByte.add(figures.firstByteMs / 1000, url)
      }
      for (const gauge of gauges) gauge.end()
    })
  }

  /**
   * A worker was picked.
   *
   * @param model canonical id, or `unknown`; `other` beyond 1,000 models
   * @param policy name of the policy, or `hook` if a hook picked
   */
  onSelection(worker: SelectedWorker, model: string, policy: string): void {
    const known = this.#byModel.get(model)
    if (known !== undefined) {
      for (const selection of known) {
        if (
          selection.policy === policy &&
          selection.workerType === worker.workerType &&
          selection.connectionMode === worker.connectionMode
        ) {
          selection.count.value += 1
          return
        }
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
    const selection = { workerType, connectionMode, policy, count }
    const known = this.#byModel.get(model)
    if (known === undefined) this.#byModel.set(model, [selection])
    else known.push(selection)
  }

  onError(workerType: WorkerType, connectionMode: ConnectionMode, errorType: WorkerErrorType): void {
    this.#errors.labels(workerType, connectionMode, errorType).inc()
  }
}

/** A gauge, or a counter kept elsewhere, whose series are exactly those added between `begin` and `end`. */
export class LiveGauge {
  readonly #family: MetricFamily<GaugeHandle | CounterHandle>
  /** Series of the previous pass; those not added again are removed. */
  #stale = new Map<string, string[]>()
  #live = new Map<string, string[]>()

  constructor(
    metrics: Metrics,
    name: string,
    help: string,
    labels: readonly string[],
    kind: 'gauge' | 'counter' = 'gauge',
  ) {
    this.#family = metrics[kind]({ name, help, labels })
  }

  begin(): void {
    this.#stale = this.#live
    this.#live = new Map()
  }

  add(by: number, ...labels: string[]): void {
    const key = labelKey(labels)
    const gauge = this.#family.labels(...labels)
    if (!this.#live.has(key)) gauge.value = 0
    gauge.value += by
    this.#live.set(key, labels)
    this.#stale.delete(key)
  }

  end(): void {
    for (const labels of this.#stale.values()) this.#family.remove(...labels)
  }
}
