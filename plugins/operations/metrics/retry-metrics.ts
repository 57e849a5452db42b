/** Counts further attempts: how often, how long they waited, and how often none was left. */
import type { CounterHandle, HistogramHandle, MetricFamily, Metrics, WorkerType } from '#kernel'

/** Attempts with a label of their own; further ones share one, since settings allow any number. */
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
      help: 'Attempts that followed a failed one.',
      labels,
    })
    this.#exhausted = metrics.counter({
      name: 'weir_worker_retries_exhausted_total',
      help: 'Requests whose last attempt failed too.',
      labels,
    })
    this.#backOff = metrics.histogram({
      name: 'weir_worker_retry_backoff_seconds',
      help: 'Waits before further attempts, by number of the attempt.',
      labels: ['attempt'],
    })
  }

  /**
   * Another attempt begins.
   *
   * @param endpoint short label of the route, such as `chat`
   * @param attempt its number; 2 is the first that is counted here
   */
  onRetry(workerType: WorkerType, endpoint: string, attempt: number, waitedMs: number): void {
    this.#retries.labels(workerType, endpoint).value += 1
    const label = attempt > MAX_ATTEMPT_LABEL ? 'more' : String(attempt)
    this.#backOff.labels(label).observe(waitedMs / 1000)
  }

  /** An attempt failed in a way that another might have mended, and none is left. */
  onExhausted(workerType: WorkerType, endpoint: string): void {
    this.#exhausted.labels(workerType, endpoint).value += 1
  }
}
