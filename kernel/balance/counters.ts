/**
 * Status and requests in flight of all workers, over all threads, in shared memory.
 * @hot
 *
 * A thread counts twice, in its own column and in the total: reading costs one load however many threads there are,
 * and what a crashed thread had in flight can still be taken out again.
 */
import { WORKER_STATUS_CODE, type WorkerStatus } from '../contracts/worker.ts'
import { CounterLayout, SharedColumn, ThreadColumn } from './counter-layout.ts'

const READY = WORKER_STATUS_CODE.ready
const STATUS_OF_CODE = (Object.keys(WORKER_STATUS_CODE) as WorkerStatus[]).sort(
  (a, b) => WORKER_STATUS_CODE[a] - WORKER_STATUS_CODE[b],
)

/**
 * Makes the buffer, all zero: every worker `pending`, nothing in flight, every breaker closed. Control makes it once
 * and hands it to all.
 *
 * @param maxWorkers rows
 * @param threadCount data threads; control comes on top
 */
export function createCounters(maxWorkers: number, threadCount: number): SharedArrayBuffer {
  return CounterLayout.createBuffer(maxWorkers, threadCount + 1)
}

/** The counters as one thread sees them: it reads every column and writes its own. */
export class Counters {
  readonly layout: CounterLayout
  readonly maxWorkers: number
  /** 0 for control, 1-based for data threads. */
  readonly threadIndex: number
  /** Requests in flight by row, over all threads; for reading only. */
  readonly inFlightBySlot: Int32Array
  readonly #cells: Int32Array
  readonly #statusAt: number
  readonly #totalAt: number
  readonly #ownAt: number

  /** @throws RangeError when the buffer has no column for the thread */
  constructor(buffer: SharedArrayBuffer, threadIndex: number) {
    const layout = new CounterLayout(buffer)
    this.layout = layout
    this.#cells = layout.cells
    this.maxWorkers = layout.maxWorkers
    this.threadIndex = threadIndex
    this.#statusAt = layout.shared(SharedColumn.status)
    this.#totalAt = layout.shared(SharedColumn.inFlightTotal)
    this.inFlightBySlot = this.#cells.subarray(this.#totalAt, this.#totalAt + this.maxWorkers)
    this.#ownAt = layout.ofThread(threadIndex, ThreadColumn.inFlight)
  }

  /**
   * One more request of this thread is in flight to the worker. The total goes first here and last in `decrement`:
   * a thread that dies between the two leaves it one too high, never below zero.
   */
  increment(slot: number): void {
    Atomics.add(this.#cells, this.#totalAt + slot, 1)
    Atomics.add(this.#cells, this.#ownAt + slot, 1)
  }

  /** One less. @throws RangeError below zero: somebody released what was never counted */
  decrement(slot: number): void {
    if (this.#cells[this.#ownAt + slot] <= 0) {
      throw new RangeError(`in-flight count of slot ${slot} would fall below zero`)
    }
    Atomics.sub(this.#cells, this.#ownAt + slot, 1)
    Atomics.sub(this.#cells, this.#totalAt + slot, 1)
  }

  /**
   * Requests in flight to the worker, over all threads. A plain read: an aligned Int32 never tears (ECMA-262 memory
   * model), and a figure that is some nanoseconds old serves balancing as well.
   */
  inFlight(slot: number): number {
    return this.#cells[this.#totalAt + slot]
  }

  /** True when the worker takes new requests, as far as its health goes. */
  isReady(slot: number): boolean {
    return this.#cells[this.#statusAt + slot] === READY
  }

  /** True when no thread counts anything for the row, so that it may serve another worker. */
  isIdle(slot: number): boolean {
    if (Atomics.load(this.#cells, this.#totalAt + slot) !== 0) return false
    for (let thread = 0; thread < this.layout.columnCount; thread++) {
      if (Atomics.load(this.#cells, this.layout.ofThread(thread, ThreadColumn.inFlight) + slot) !== 0)
        return false
    }
    return true
  }

  status(slot: number): WorkerStatus {
    this.#requireSlot(slot)
    return STATUS_OF_CODE[this.#cells[this.#statusAt + slot]]
  }

  /** Control only, seen by every thread's next pick. @throws Error on another thread, RangeError for no such row */
  setStatus(slot: number, status: WorkerStatus): void {
    this.requireControl()
    this.#requireSlot(slot)
    Atomics.store(this.#cells, this.#statusAt + slot, WORKER_STATUS_CODE[status])
    this.layout.bumpAvailability()
  }

  /**
   * Control only: forgets what a thread had in flight, probes of breakers among it, once that thread is gone and
   * before its successor starts.
   */
  zeroColumn(thread: number): void {
    this.requireControl()
    const { layout } = this
    this.#takeOut(layout.ofThread(thread, ThreadColumn.inFlight), this.#totalAt)
    this.#takeOut(layout.ofThread(thread, ThreadColumn.probes), layout.shared(SharedColumn.probesTotal))
  }

  /** @throws Error on a data thread: one writer keeps the shared columns free of races */
  requireControl(): void {
    if (this.threadIndex !== 0) throw new Error('only control may change worker rows')
  }

  #takeOut(columnAt: number, totalAt: number): void {
    for (let slot = 0; slot < this.maxWorkers; slot++) {
      const lost = Atomics.exchange(this.#cells, columnAt + slot, 0)
      if (lost !== 0) Atomics.sub(this.#cells, totalAt + slot, lost)
    }
  }

  #requireSlot(slot: number): void {
    if (!(slot >= 0 && slot < this.maxWorkers)) throw new RangeError(`there is no worker slot ${slot}`)
  }
}
