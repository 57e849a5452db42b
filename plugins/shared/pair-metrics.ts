/** Times of prefill/decode pairs, and bodies that could not be made into a pair of them. */
import type { CounterHandle, HistogramHandle, MetricFamily, Metrics, WorkerEntry } from '#kernel'
import { type LabelLimit, modelLabelLimit } from './formats/label-limit.ts'

/** The times of pairs for one model and engine. */
export interface PairTimes {
  /** From sending both requests to the end of the prefill worker's answer, in seconds. */
  readonly prefill: HistogramHandle
  /** From sending both requests to the first byte of the decode worker's answer that goes on, in seconds. */
  readonly firstToken: HistogramHandle
  /** From the end of the prefill worker's answer to sending the decode worker's request, in seconds. */
  readonly transfer: HistogramHandle
}

/** How what a prefill engine holds gets to the decode engine, where the gateway has a part in it. */
export type ConnectorMode = 'mooncake' | 'nixl' | 'passthrough'

/** Declared by each plugin that has a way to pair workers; the series are the same. */
export class PairMetrics {
  readonly #models: LabelLimit = modelLabelLimit()
  readonly #prefill: MetricFamily<HistogramHandle>
  readonly #firstToken: MetricFamily<HistogramHandle>
  readonly #transfer: MetricFamily<HistogramHandle>
  readonly #bootstrapFailures: CounterHandle
  readonly #connectors: MetricFamily<CounterHandle>
  readonly #transferFailures: CounterHandle

  constructor(metrics: Metrics) {
    const labels = ['backend_type', 'model', 'runtime']
    this.#prefill = metrics.histogram({
      name: 'weir_pd_prefill_duration_seconds',
      help: 'Time that the prefill worker of a pair takes.',
      labels,
    })
    this.#firstToken = metrics.histogram({
      name: 'weir_pd_ttft_seconds',
      help: 'Time from the start of prefill to the first byte of the answer of the decode worker.',
      labels,
    })
    this.#transfer = metrics.histogram({
      name: 'weir_pd_kv_transfer_duration_seconds',
      help: 'Time from the end of prefill to the request to the decode worker, where one follows the other.',
      labels,
    })
    this.#connectors = metrics.counter({
      name: 'weir_pd_kv_connector_mode_total',
      help: 'Pairs whose decode worker was sent after the prefill worker, by the connector between them.',
      labels: ['mode'],
    })
    this.#transferFailures = metrics
      .counter({
        name: 'weir_pd_kv_transfer_failures_total',
        help: 'Pairs whose prefill worker did not say what the decode worker needs to take over.',
      })
      .labels()
    this.#bootstrapFailures = metrics
      .counter({
        name: 'weir_pd_bootstrap_failures_total',
        help: 'Requests that could not be told how the workers of their pair meet.',
      })
      .labels()
  }

  of(prefill: WorkerEntry, model: string): PairTimes {
    const labels = ['pd', this.#models.admit(model), prefill.runtimeType]
    return {
      prefill: this.#prefill.labels(...labels),
      firstToken: this.#firstToken.labels(...labels),
      transfer: this.#transfer.labels(...labels),
    }
  }

  onConnector(mode: ConnectorMode): void {
    this.#connectors.labels(mode).value += 1
  }

  onTransferFailure(): void {
    this.#transferFailures.value += 1
  }

  onBootstrapFailure(): void {
    this.#bootstrapFailures.value += 1
  }
}
