/** Metrics of retries. */
import type { CounterHandle, HistogramHandle, MetricFamily, Metrics, WorkerType } from '#kernel'

/** Highest attempt number with its own label; later attempts are labelled `more`. */
const MAX_ATTEMPT_LABEL = 20

/** Declares the retry metrics of one thread. */
export class RetryMetrics {
  readonly #retries: MetricFamily<CounterHandle>
  readonly #exhausted: MetricFamily<CounterHandle>
  readonly #backOff: MetricFamily<HistogramHandle>

  constructor(metrics: Metrics) {
    const labels = ['worker_type', 'endpoint']
    this.#retries = metrics.counter({
      name: 'weir_worker_retries_total',
      help: 'Retries.',
      labels,
    })
    this.#exhausted = metrics.counter({
      name: 'weir_worker_retries_exhausted_total',
      help: 'Requests that failed after the last retry.',
      labels,
    })
    this.#backOff = metrics.histogram({
      name: 'weir_worker_retry_backoff_seconds',
      help: 'Backoff before a retry, by attempt number.',
      labels: ['attempt'],
    })
  }

  /**
   * A retry starts.
   *
   * @param endpoint short label of the route, such as `chat`
   * @param attempt number of the attempt, at least 2
   */
  onRetry(workerType: WorkerType, endpoint: string, attempt: number, waitedMs: number): void {
    this.#retries.labels(workerType, endpoint).value += 1
    const label = attempt > MAX_ATTEMPT_LABEL ? 'more' : String(attempt)
    this.#backOff.labels(label).observe(waitedMs / 1000)
  }

  /** A retryable failure occurred, but no attempt is left. */
  onExhausted(workerType: WorkerType, endpoint: string): void {
    this.#exhausted.labels(workerType, endpoint).value += 1
  }
}
