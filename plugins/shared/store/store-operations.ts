/** Errors of every implementation of the Store contract, and metrics of its operations. */
import {
  type CounterHandle,
  defineErrors,
  GatewayError,
  type HistogramHandle,
  type Metrics,
  retryAfter,
} from '#kernel'

export const storeErrors = defineErrors('store', {
  record_store_missing: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'needs a store: enable postgres or storage under plugins',
  },
  storage_not_open: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the record store is not open',
  },
  storage_failed: {
    kind: 'internal',
    source: 'gateway',
    text: (verb: string, collection: string) => `cannot ${verb} a record of ${collection}`,
  },
  record_unreadable: {
    kind: 'internal',
    source: 'gateway',
    text: (collection: string, id: string) =>
      `the stored record ${JSON.stringify(id)} of ${collection} is damaged; delete it, or restore the store from a backup`,
  },
  storage_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: (problem: string) => `the record store is unavailable: ${problem}`,
  },
  storage_overloaded: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the record store is overloaded; retry later',
  },
  record_too_large: {
    kind: 'too_large',
    source: 'client',
    text: (bytes: number, limit: number) =>
      `a record of ${bytes} characters is larger than the limit of ${limit}`,
  },
  invalid_record_key: {
    kind: 'bad_request',
    source: 'client',
    text: (part: string) =>
      `the ${part} of a record must be well-formed Unicode without NUL, at most 1024 bytes`,
  },
  invalid_collection_name: {
    kind: 'internal',
    source: 'gateway',
    text: (name: string) =>
      `a collection name must be 1 to 64 letters, digits and hyphens (got ${JSON.stringify(name)})`,
  },
})

/** Time after which a client may try again, seconds. */
const RETRY_SECS = 5

/** Error of a store that is down: storage_unavailable (503) with retry-after. @param problem why; clients see it */
export function storageUnavailable(problem: string, cause?: unknown): GatewayError {
  return storeErrors.storage_unavailable.with({ ...retryAfter(RETRY_SECS), cause }, problem)
}

/** storage_overloaded (503) with retry-after. */
export function storageOverloaded(): GatewayError {
  return storeErrors.storage_overloaded.with(retryAfter(1))
}

/** Whether a stored record is damaged, so that reading it again does not help. */
export function isUnreadableRecord(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'record_unreadable'
}

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
