/**
 * Layout of the shared counters: a row per worker slot, shared columns, and columns per thread. Only `counters.ts`,
 * `breakers.ts`, `breaker-cell.ts`, `outliers.ts`, `worker-statistics.ts` and `latency-weights.ts` access them.
 *
 * ```
 * header | status | load | breaker … | outlier … | statistics … | thread 0: in flight, probes | thread 1: in flight, probes | …
 * ```
 * All cells are Int32, and each column begins on a cache line of its own. The table of last errors follows.
 */

/** Shared columns. Only control writes the status. */
export const SharedColumn = {
  status: 0,
  /** In-flight requests over all threads, and those of other gateways. */
  load: 1,
  /** State, run and epoch of the circuit breaker, see `breakers.ts`. */
  breaker: 2,
  /** Time when the breaker opened, and start of its last probe: milliseconds, low 32 bits. */
  openedAt: 3,
  probedAt: 4,
  probesTotal: 5,
  /** 1 if one of the failures that the breaker counts was not a response. */
  unanswered: 6,
  /** Share of recent attempts that failed, see `outliers.ts`. */
  failureShare: 7,
  /** Last attempt at an outlier; milliseconds, low 32 bits, as the next two. */
  triedAt: 8,
  /** Last byte of a stream. */
  progressAt: 9,
  /** When a thread last saw a stream without progress. */
  stalledAt: 10,
  /** Attempts with an outcome, and those that failed, by class; see `worker-statistics.ts`. */
  attempts: 11,
  answered: 12,
  silent: 13,
  unreachable: 14,
  /** Moving averages of successful attempts, milliseconds. */
  durationMs: 15,
  firstByteMs: 16,
  /** In-flight requests of other gateways, which the load contains. Only control writes them. */
  elsewhere: 17,
  /** See `latency-weights.ts`. */
  slowness: 18,
  /** Rejected requests since the last served one, see `worker-statistics.ts`. */
  refusals: 19,
  /** Answers that named another model than before, see `worker-warnings.ts`. */
  misnamed: 20,
} as const
const SHARED_COLUMNS = 21

/** Columns per thread: counts to subtract if the thread dies. */
export const ThreadColumn = { inFlight: 0, probes: 1 } as const
const THREAD_COLUMNS = 2

/** Row of the table of last errors: version, time, length and text, see `worker-statistics.ts`. */
export const ERROR_HEADER_CELLS = 3
export const ERROR_TEXT_BYTES = 256
export const ERROR_ROW_CELLS = ERROR_HEADER_CELLS + ERROR_TEXT_BYTES / Int32Array.BYTES_PER_ELEMENT

const HEADER_CELLS = 16
const MAX_WORKERS_AT = 0
const COLUMN_COUNT_AT = 1
/** Incremented by each change of a status or of a breaker's state, on any thread. */
const AVAILABILITY_AT = 2
const LINE_CELLS = 16
const CELL_BYTES = Int32Array.BYTES_PER_ELEMENT

/** Cells from one column to the next: whole cache lines. */
function columnStride(maxWorkers: number): number {
  return Math.ceil(maxWorkers / LINE_CELLS) * LINE_CELLS
}

/** First cell of the last errors. */
function errorsAt(maxWorkers: number, columnCount: number): number {
  return HEADER_CELLS + (SHARED_COLUMNS + columnCount * THREAD_COLUMNS) * columnStride(maxWorkers)
}

/** The cells of the buffer, and the index of the first row of each column. */
export class CounterLayout {
  readonly cells: Int32Array
  readonly maxWorkers: number
  /** Control's and one for each data thread. */
  readonly columnCount: number
  readonly #stride: number

  /** @param columnCount control and the data threads */
  static createBuffer(maxWorkers: number, columnCount: number): SharedArrayBuffer {
    const cells = errorsAt(maxWorkers, columnCount) + maxWorkers * ERROR_ROW_CELLS
    const buffer = new SharedArrayBuffer(cells * CELL_BYTES)
    const header = new Int32Array(buffer, 0, HEADER_CELLS)
    header[MAX_WORKERS_AT] = maxWorkers
    header[COLUMN_COUNT_AT] = columnCount
    return buffer
  }

  constructor(buffer: SharedArrayBuffer) {
    this.cells = new Int32Array(buffer)
    this.maxWorkers = this.cells[MAX_WORKERS_AT]
    this.columnCount = this.cells[COLUMN_COUNT_AT]
    this.#stride = columnStride(this.maxWorkers)
  }

  get errorsAt(): number {
    return errorsAt(this.maxWorkers, this.columnCount)
  }

  /** Call it after a change of a status, a breaker or a suspicion. */
  bumpAvailability(): void {
    Atomics.add(this.cells, AVAILABILITY_AT, 1)
  }

  /** Equal values mean that no status and no breaker has changed. */
  get availability(): number {
    return Atomics.load(this.cells, AVAILABILITY_AT)
  }

  shared(column: number): number {
    return HEADER_CELLS + column * this.#stride
  }

  /** @throws RangeError if the buffer has no columns for the thread */
  ofThread(thread: number, column: number): number {
    if (!(thread >= 0 && thread < this.columnCount))
      throw new RangeError(`there is no thread column ${thread}`)
    return HEADER_CELLS + (SHARED_COLUMNS + thread * THREAD_COLUMNS + column) * this.#stride
  }
}
