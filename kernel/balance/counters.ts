/**
 * Status and in-flight requests of all workers, over all threads, in shared memory.
 * @hot
 *
 * A thread counts in its own column and in the load of the worker: reading costs one load for any number of threads, and
 * the requests of a dead thread can be subtracted. The load also contains the requests of other gateways, so that picks
 * need no second read for them.
 */
import { WORKER_STATUS_CODE, type WorkerStatus } from '../contracts/worker.ts'
import { balanceErrors } from './balance-errors.ts'
import { CounterLayout, SharedColumn, ThreadColumn } from './counter-layout.ts'

const READY = WORKER_STATUS_CODE.ready
const STATUS_OF_CODE = (Object.keys(WORKER_STATUS_CODE) as WorkerStatus[]).sort(
  (a, b) => WORKER_STATUS_CODE[a] - WORKER_STATUS_CODE[b],
)

/**
 * Creates the buffer, all zero: every worker `pending`, nothing in flight, every breaker closed. Control creates it once.
 *
 * @param maxWorkers rows
 * @param threadCount data threads, without control
 */
export function createCounters(maxWorkers: number, threadCount: number): SharedArrayBuffer {
  return CounterLayout.createBuffer(maxWorkers, threadCount + 1)
}

/** One thread's view of the counters: it reads every column and writes its own. */
export class Counters {
  readonly layout: CounterLayout
  readonly maxWorkers: number
  /** 0 for control, 1-based for data threads. */
  readonly threadIndex: number
  /** In-flight requests by row, over all threads and gateways; read-only. */
  readonly loadBySlot: Int32Array
  readonly #cells: Int32Array
  readonly #statusAt: number
  readonly #loadAt: number
  readonly #ownAt: number
  readonly #elsewhereAt: number

  /** @throws RangeError if the buffer has no column for the thread */
  constructor(buffer: SharedArrayBuffer, threadIndex: number) {
    const layout = new CounterLayout(buffer)
    this.layout = layout
    this.#cells = layout.cells
    this.maxWorkers = layout.maxWorkers
    this.threadIndex = threadIndex
    this.#statusAt = layout.shared(SharedColumn.status)
    this.#loadAt = layout.shared(SharedColumn.load)
    this.loadBySlot = this.#cells.subarray(this.#loadAt, this.#loadAt + this.maxWorkers)
    this.#ownAt = layout.ofThread(threadIndex, ThreadColumn.inFlight)
    this.#elsewhereAt = layout.shared(SharedColumn.elsewhere)
  }

  /**
   * Counts a request in flight to the worker. The load changes first here and last in `decrement`: a thread that dies
   * between the two leaves the load one too high, never below zero.
   */
  increment(slot: number): void {
    Atomics.add(this.#cells, this.#loadAt + slot, 1)
    Atomics.add(this.#cells, this.#ownAt + slot, 1)
  }

  /** @throws RangeError below zero: a release without a count */
  decrement(slot: number): void {
    if (this.#cells[this.#ownAt + slot] <= 0) {
      throw new RangeError(`in-flight count of slot ${slot} would fall below zero`)
    }
    Atomics.sub(this.#cells, this.#ownAt + slot, 1)
    Atomics.sub(this.#cells, this.#loadAt + slot, 1)
  }

  /**
   * In-flight requests of the worker, over all threads and gateways. A plain read: an aligned Int32 never tears (ECMA-262
   * memory model), and balancing does not need the newest value.
   */
  load(slot: number): number {
    return this.#cells[this.#loadAt + slot]
  }

  /** In-flight requests of this gateway, over all threads; exact on control, which writes those of other gateways. */
  inFlight(slot: number): number {
    return this.#cells[this.#loadAt + slot] - this.#cells[this.#elsewhereAt + slot]
  }

  /** In-flight requests of other gateways, as last reported. */
  elsewhere(slot: number): number {
    return this.#cells[this.#elsewhereAt + slot]
  }

  /** Control only. @throws Error on another thread, RangeError for an unknown row */
  setElsewhere(slot: number, count: number): void {
    this.requireControl()
    this.#requireSlot(slot)
    const before = Atomics.exchange(this.#cells, this.#elsewhereAt + slot, count)
    Atomics.add(this.#cells, this.#loadAt + slot, count - before)
  }

  /** True if the status of the worker is `ready`. */
  isReady(slot: number): boolean {
    return this.#cells[this.#statusAt + slot] === READY
  }

  /** Control only: true if no thread counts a request for the row, so that another worker may have it. */
  isIdle(slot: number): boolean {
    if (this.inFlight(slot) !== 0) return false
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

  /** Control only; applies to the next pick of every thread. @throws Error on another thread, RangeError for an unknown row */
  setStatus(slot: number, status: WorkerStatus): void {
    this.requireControl()
    this.#requireSlot(slot)
    Atomics.store(this.#cells, this.#statusAt + slot, WORKER_STATUS_CODE[status])
    this.layout.bumpAvailability()
  }

  /**
   * Control only: subtracts the in-flight requests and probes of a dead thread, before its successor starts.
   */
  zeroColumn(thread: number): void {
    this.requireControl()
    const { layout } = this
    this.#subtract(layout.ofThread(thread, ThreadColumn.inFlight), this.#loadAt)
    this.#subtract(layout.ofThread(thread, ThreadColumn.probes), layout.shared(SharedColumn.probesTotal))
  }

  /** @throws Error on a data thread: shared columns have one writer */
  requireControl(): void {
    if (this.threadIndex !== 0) throw new Error('only control may change worker rows')
  }

  #subtract(columnAt: number, totalAt: number): void {
    for (let slot = 0; slot < this.maxWorkers; slot++) {
      const lost = Atomics.exchange(this.#cells, columnAt + slot, 0)
      if (lost !== 0) Atomics.sub(this.#cells, totalAt + slot, lost)
    }
  }

  #requireSlot(slot: number): void {
    if (!(slot >= 0 && slot < this.maxWorkers)) throw new RangeError(`there is no worker slot ${slot}`)
  }
}

/**
 * Allocates the rows of workers, on control only: lowest row first, and never one that still counts requests of its previous
 * worker.
 */
export class SlotAllocator {
  readonly #counters: Counters
  readonly #taken: Uint8Array

  constructor(counters: Counters) {
    this.#counters = counters
    this.#taken = new Uint8Array(counters.maxWorkers)
  }

  /**
   * @returns the lowest free row without requests on any thread; its status is `pending`
   * @throws worker_limit (503) if there is none
   */
  allocate(): number {
    this.#counters.requireControl()
    for (let slot = 0; slot < this.#taken.length; slot++) {
      if (this.#taken[slot] === 1 || !this.#counters.isIdle(slot)) continue
      this.#taken[slot] = 1
      return slot
    }
    throw balanceErrors.worker_limit(this.#taken.length)
  }

  /**
   * Frees the row. Call it when all threads have acknowledged the table without the worker: until then a thread could pick
   * the old worker in the row of a new one.
   */
  free(slot: number): void {
    this.#counters.setStatus(slot, 'pending')
    this.#taken[slot] = 0
  }
}
