/** Times of prefill/decode pairs, and bodies that could not be made into a pair of them. */
import { type LabelLimit, modelLabelLimit } from '#contracts'
import type { CounterHandle, HistogramHandle, MetricFamily, Metrics, WorkerEntry } from '#kernel'

/** The times of pairs for one model and engine. */
export interface PairTimes {
  /** From sending both requests to the end of the prefill worker's answer, in seconds. */
  readonly prefill: HistogramHandle
  /** From sending both requests to the first byte of the decode worker's answer that goes on, in seconds. */
  readonly firstToken: HistogramHandle
}

/** @source routing facts 6.2 */
export class PairMetrics {
  readonly #models: LabelLimit = modelLabelLimit()
  readonly #prefill: MetricFamily<HistogramHandle>
  readonly #firstToken: MetricFamily<HistogramHandle>
  readonly #bootstrapFailures: CounterHandle

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
    this.#bootstrapFailures = metrics
      .counter({
        name: 'weir_pd_bootstrap_failures_total',
        help: 'Requests that could not be told how the workers of their pair meet.',
      })
      .labels()
  }

  of(prefill: WorkerEntry, model: string): PairTimes {
    const labels = ['pd', this.#models.admit(model), prefill.runtimeType]
    return { prefill: this.#prefill.labels(...labels), firstToken: this.#firstToken.labels(...labels) }
  }

  onBootstrapFailure(): void {
    this.#bootstrapFailures.value += 1
  }
}
