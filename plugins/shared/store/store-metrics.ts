/** Metrics and error mapping of store operations. */
import { type CounterHandle, GatewayError, type HistogramHandle, type Metrics } from '#kernel'
import { storeErrors } from './store-errors.ts'

const LABELS = ['storage_type', 'operation']

export class StoreMetrics {
  readonly #metrics: Metrics
  readonly #storageType: string
  readonly #operations: ReturnType<Metrics['counter']>
  readonly #durations: ReturnType<Metrics['histogram']>
  /** By operation and result. */
  readonly #handles = new Map<string, { readonly count: CounterHandle; readonly duration: HistogramHandle }>()

  /** @param storageType label of every series, such as `leveldb` */
  constructor(metrics: Metrics, storageType: string) {
    this.#metrics = metrics
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

  /** Exports whether the store works. Call it on control only, since gauges of several threads are summed. */
  watch(isUp: () => boolean): void {
    const up = this.#metrics
      .gauge({
        name: 'weir_db_up',
        help: '1 while the record store works, 0 while it is down.',
        labels: ['storage_type'],
      })
      .labels(this.#storageType)
    this.#metrics.onCollect(() => {
      up.value = isUp() ? 1 : 0
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

/**
 * Runs a store operation and counts it.
 * @throws storage_failed (500) with the error of the database as its cause, or the gateway error of the operation
 */
export async function runStoreOperation<R>(
  metrics: StoreMetrics | null,
  verb: 'read' | 'write' | 'delete',
  collection: string,
  act: () => Promise<R>,
): Promise<R> {
  const startedAtMs = performance.now()
  try {
    const result = await act()
    metrics?.onDone(verb, 'success', startedAtMs)
    return result
  } catch (cause) {
    if (cause instanceof GatewayError && cause.code === 'storage_not_open') throw cause
    metrics?.onDone(verb, 'error', startedAtMs)
    if (cause instanceof GatewayError) throw cause
    throw storeErrors.storage_failed.with({ cause }, verb, collection)
  }
}
