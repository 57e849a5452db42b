/** Metrics of store operations. */
import type { CounterHandle, HistogramHandle, Metrics } from '#kernel'

const LABELS = ['storage_type', 'operation']

export class StoreMetrics {
  readonly #storageType: string
  readonly #operations: ReturnType<Metrics['counter']>
  readonly #durations: ReturnType<Metrics['histogram']>
  /** By operation and result. */
  readonly #handles = new Map<string, { readonly count: CounterHandle; readonly duration: HistogramHandle }>()

  /** @param storageType label of every series, such as `leveldb` */
  constructor(metrics: Metrics, storageType: string) {
    this.#storageType = storageType
    this.#operations = metrics.counter({
      name: 'weir_db_operations_total',
      help: 'Store operations, by result.',
      labels: LABELS.concat('result'),
    })
    this.#durations = metrics.histogram({
      name: 'weir_db_operation_duration_seconds',
      help: 'Duration of store operations.',
      labels: LABELS,
    })
  }

  /** @param startedAtMs time of `performance.now()` */
  onDone(operation: string, result: 'success' | 'error', startedAtMs: number): void {
    const key = result === 'success' ? operation : `${operation} ${result}`
    let handles = this.#handles.get(key)
    if (handles === undefined) {
      handles = {
        count: this.#operations.labels(this.#storageType, operation, result),
        duration: this.#durations.labels(this.#storageType, operation),
      }
      this.#handles.set(key, handles)
    }
    handles.count.inc()
    handles.duration.observe((performance.now() - startedAtMs) / 1000)
  }
}
