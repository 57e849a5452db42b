/** Counts what is done with records, and how long it takes. */
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
      help: 'Reads, writes and deletions of records.',
      labels: LABELS.concat('result'),
    })
    this.#durations = metrics.histogram({
      name: 'weir_db_operation_duration_seconds',
      help: 'Time that a read, write or deletion of records takes.',
      labels: LABELS,
    })
  }

  /** @param startedAtMs as `performance.now()` has it */
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
