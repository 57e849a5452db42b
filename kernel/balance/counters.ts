/**
 * The shared counters of all workers in one SharedArrayBuffer: a row per worker slot, a column per thread, and two
 * columns that all share. Nothing else touches the buffer.
 * @hot
 *
 * ```
 * header | status | in flight, total | thread 0: in flight | thread 1: in flight | …
 * ```
 * A thread counts twice, in its own column and in the total: reading costs one load however many threads there are,
 * and what a crashed thread had in flight can still be taken out again. All cells are Int32, and each column begins
 * on a cache line of its own. A new kind of column (failures, breaker state) is one more name in SharedColumn, or
 * one more in THREAD_COLUMNS when each thread keeps its own.
 */
import { WORKER_STATUS_CODE, type WorkerStatus } from '../contracts/worker.ts'

const HEADER_CELLS = 16
const MAX_WORKERS_AT = 0
const COLUMN_COUNT_AT = 1
const LINE_CELLS = 16
/** Columns that exist once. Status is written by control only. */
const SharedColumn = { status: 0, inFlightTotal: 1 } as const
const SHARED_COLUMNS = 2
/** Columns of each thread: in flight. */
const THREAD_COLUMNS = 1
const CELL_BYTES = Int32Array.BYTES_PER_ELEMENT

const READY = WORKER_STATUS_CODE.ready
const STATUS_OF_CODE = (Object.keys(WORKER_STATUS_CODE) as WorkerStatus[]).sort(
  (a, b) => WORKER_STATUS_CODE[a] - WORKER_STATUS_CODE[b],
)

/** Cells from one column to the next: whole cache lines. */
function columnStride(maxWorkers: number): number {
  return Math.ceil(maxWorkers / LINE_CELLS) * LINE_CELLS
}

/**
 * Makes the buffer, all zero: every worker `pending`, nothing in flight. Control makes it once and hands it to all.
 *
 * @param maxWorkers rows
 * @param threadCount data threads; column 0, for control, comes on top
 */
export function createCounters(maxWorkers: number, threadCount: number): SharedArrayBuffer {
  const columnCount = threadCount + 1
  const columns = SHARED_COLUMNS + columnCount * THREAD_COLUMNS
  const buffer = new SharedArrayBuffer((HEADER_CELLS + columns * columnStride(maxWorkers)) * CELL_BYTES)
  const header = new Int32Array(buffer, 0, HEADER_CELLS)
  header[MAX_WORKERS_AT] = maxWorkers
  header[COLUMN_COUNT_AT] = columnCount
  return buffer
}

/** The counters as one thread sees them: it reads every column and writes its own. */
export class Counters {
  readonly maxWorkers: number
  /** 0 for control, 1-based for data threads. */
  readonly threadIndex: number
  private readonly cells: Int32Array
  private readonly columnCount: number
  private readonly statusAt: number
  private readonly totalAt: number
  private readonly threadsAt: number
  private readonly ownAt: number
  private readonly threadStride: number

  /** @throws RangeError when the buffer has no column for the thread */
  constructor(buffer: SharedArrayBuffer, threadIndex: number) {
    const cells = new Int32Array(buffer)
    this.cells = cells
    this.maxWorkers = cells[MAX_WORKERS_AT]
    this.columnCount = cells[COLUMN_COUNT_AT]
    this.threadIndex = threadIndex
    const stride = columnStride(this.maxWorkers)
    this.statusAt = HEADER_CELLS + SharedColumn.status * stride
    this.totalAt = HEADER_CELLS + SharedColumn.inFlightTotal * stride
    this.threadsAt = HEADER_CELLS + SHARED_COLUMNS * stride
    this.threadStride = THREAD_COLUMNS * stride
    this.requireThread(threadIndex)
    this.ownAt = this.threadsAt + threadIndex * this.threadStride
  }

  /**
   * One more request of this thread is in flight to the worker. The total goes first here and last in `decrement`:
   * a thread that dies between the two leaves it one too high, never below zero.
   */
  increment(slot: number): void {
    Atomics.add(this.cells, this.totalAt + slot, 1)
    Atomics.add(this.cells, this.ownAt + slot, 1)
  }

  /** One less. @throws RangeError below zero: somebody released what was never counted */
  decrement(slot: number): void {
    if (this.cells[this.ownAt + slot] <= 0) {
      throw new RangeError(`in-flight count of slot ${slot} would fall below zero`)
    }
    Atomics.sub(this.cells, this.ownAt + slot, 1)
    Atomics.sub(this.cells, this.totalAt + slot, 1)
  }

  /**
   * Requests in flight to the worker, over all threads. A plain read: an aligned Int32 never tears (ECMA-262 memory
   * model), and a figure that is some nanoseconds old serves balancing as well.
   */
  inFlight(slot: number): number {
    return this.cells[this.totalAt + slot]
  }

  /** True when the worker takes new requests. */
  isReady(slot: number): boolean {
    return this.cells[this.statusAt + slot] === READY
  }

  /**
   * Finds the ready ones of many workers in one pass.
   *
   * @param slots whom to look at
   * @param positions receives the positions in `slots` of the ready ones, ascending; at least as long as `slots`
   * @returns how many are ready
   */
  collectReady(slots: Int32Array, positions: Int32Array): number {
    const { cells, statusAt } = this
    let count = 0
    for (let position = 0; position < slots.length; position++) {
      if (cells[statusAt + slots[position]] === READY) positions[count++] = position
    }
    return count
  }

  /** True when no thread counts anything for the row, so that it may serve another worker. */
  isIdle(slot: number): boolean {
    if (Atomics.load(this.cells, this.totalAt + slot) !== 0) return false
    for (let thread = 0; thread < this.columnCount; thread++) {
      if (Atomics.load(this.cells, this.threadsAt + thread * this.threadStride + slot) !== 0) return false
    }
    return true
  }

  status(slot: number): WorkerStatus {
    this.requireSlot(slot)
    return STATUS_OF_CODE[this.cells[this.statusAt + slot]]
  }

  /** Control only, seen by every thread's next pick. @throws Error on another thread, RangeError for no such row */
  setStatus(slot: number, status: WorkerStatus): void {
    this.requireControl()
    this.requireSlot(slot)
    Atomics.store(this.cells, this.statusAt + slot, WORKER_STATUS_CODE[status])
  }

  /** Control only: forgets what a thread had in flight, once that thread is gone and before its successor starts. */
  zeroColumn(thread: number): void {
    this.requireControl()
    this.requireThread(thread)
    const columnAt = this.threadsAt + thread * this.threadStride
    for (let slot = 0; slot < this.maxWorkers; slot++) {
      const lost = Atomics.exchange(this.cells, columnAt + slot, 0)
      if (lost !== 0) Atomics.sub(this.cells, this.totalAt + slot, lost)
    }
  }

  /** @throws Error on a data thread: one writer keeps the shared columns free of races */
  requireControl(): void {
    if (this.threadIndex !== 0) throw new Error('only control may change worker rows')
  }

  private requireSlot(slot: number): void {
    if (!(slot >= 0 && slot < this.maxWorkers)) throw new RangeError(`there is no worker slot ${slot}`)
  }

  private requireThread(thread: number): void {
    if (!(thread >= 0 && thread < this.columnCount))
      throw new RangeError(`there is no thread column ${thread}`)
  }
}
