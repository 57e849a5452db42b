/** Metrics about workers: gauges filled from the live table by control, counters wherever the event happens. */

import type { CounterHandle, GaugeHandle, MetricFamily, Metrics } from '#kernel'
import {
  type ConnectionMode,
  labelKey,
  WORKER_STATUS_CODE,
  type WorkerStatus,
  type WorkerType,
} from '#kernel'
import { type LabelLimit, OTHER } from '#shared'

/** One registered worker at the moment of a scrape. */
export interface WorkerSample {
  /** As registered; the `worker` label. */
  readonly url: string
  readonly workerType: WorkerType
  readonly connectionMode: ConnectionMode
  /** Ids of the models it serves; empty for a wildcard, which counts under `unknown`. */
  readonly models: readonly string[]
  /** Requests in flight to it, over all threads. */
  readonly inFlight: number
  readonly status: WorkerStatus
}

/** Why work with a worker failed, such as `connect` or `idle_timeout`: a fixed set, never a message. */
export type WorkerErrorType = string

/** What of a chosen worker its choice is counted under. */
export interface SelectedWorker {
  readonly workerType: WorkerType
  readonly connectionMode: ConnectionMode
}

/** Choices of one policy among workers of one kind, for one model. */
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
  /** Few per model, so a list is searched faster than a joined key is built. */
  readonly #byModel = new Map<string, Selection[]>()

  /** @param models shared by all metrics with a `model` label, see `modelLabelLimit` */
  constructor(metrics: Metrics, models: LabelLimit) {
    this.#metrics = metrics
    this.#models = models
    this.#selections = metrics.counter({
      name: 'weir_worker_selection_total',
      help: 'Choices of a worker.',
      labels: ['worker_type', 'connection_mode', 'model', 'policy'],
    })
    this.#errors = metrics.counter({
      name: 'weir_worker_errors_total',
      help: 'Attempts that failed at a worker.',
      labels: ['worker_type', 'connection_mode', 'error_type'],
    })
  }

  /**
   * Fills the pool gauges at each scrape. Call it on control only: gauges of several threads add up.
   * Series of workers that left are dropped.
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
    const health = new LiveGauge(
      this.#metrics,
      'weir_worker_health',
      '1 when the worker is ready, otherwise 0.',
      ['worker'],
    )
    const state = new LiveGauge(
      this.#metrics,
      'weir_worker_state',
      'Lifecycle: 0 pending, 1 ready, 2 not ready, 3 failed, 4 draining.',
      ['worker'],
    )
    const gauges = [poolSize, connections, requests, health, state]
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
      }
      for (const gauge of gauges) gauge.end()
    })
  }

  /**
   * A worker was chosen: one lookup and one addition per pick.
   *
   * @param model canonical id, or `unknown`; beyond 1,000 of them `other`
   * @param policy wire name of the policy, or `hook` when a hook chose
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

/** A gauge whose children are exactly what one pass added: begin, add any number of times, end. */
export class LiveGauge {
  readonly #family: MetricFamily<GaugeHandle>
  /** Children of the pass before the one under way, by key; what is not added again is removed. */
  #stale = new Map<string, string[]>()
  #live = new Map<string, string[]>()

  constructor(metrics: Metrics, name: string, help: string, labels: readonly string[]) {
    this.#family = metrics.gauge({ name, help, labels })
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
