/**
 * The concurrency limit of all threads in shared memory: permits in use, waiting requests, and the order of arrival. @hot
 *
 * One 32-bit word holds both totals, so that an entry is one compare-and-swap: permits in use in the low 16 bits,
 * waiting requests in the high 16 bits. Each thread also counts in a column of its own, so that the permits of a thread
 * that died can be released. The word is incremented before the column and decremented after it: a thread that dies in
 * between leaves the word one too high, never below zero, where one count would borrow from the other.
 */

import { bytesOfColumns, OWN_CELLS, ThreadColumns } from '../thread-columns.ts'

/** Most permits and most waiting requests that the counting word can hold. */
export const MAX_COUNT = 65_535

const STATE = 0
const HEADER_CELLS = 2
const USED = OWN_CELLS
const WAITING = OWN_CELLS + 1
/** Oldest waiting ticket of the thread; 0 if none. */
const HEAD = OWN_CELLS + 2
const COLUMN_CELLS = OWN_CELLS + 3
const ONE_WAITING = 0x1_0000

export type PermitResult = 'entered' | 'queued' | 'full'

export interface PermitUse {
  readonly inUse: number
  readonly waiting: number
}

export class SharedPermits extends ThreadColumns {
  readonly #nowMs: () => number

  /** Bytes of shared memory for that many threads. */
  static bytes(columns: number): number {
    return bytesOfColumns(HEADER_CELLS, columns, COLUMN_CELLS)
  }

  /**
   * @param column of this thread, 0-based
   * @param nowMs a clock that all threads share, milliseconds
   */
  constructor(memory: SharedArrayBuffer, column: number, nowMs: () => number) {
    super(memory, column, HEADER_CELLS, COLUMN_CELLS)
    this.#nowMs = nowMs
  }

  /** Totals over all threads. */
  get use(): PermitUse {
    const state = Atomics.load(this.cells, STATE)
    return { inUse: state & MAX_COUNT, waiting: state >>> 16 }
  }

  /**
   * Takes a permit, or joins the queue. While any request waits, new ones wait too.
   * After `queued`, call `takeTicket`, `publishHead` and `takeNext`.
   */
  enter(limit: number, queueSize: number): PermitResult {
    const cells = this.cells
    for (;;) {
      const state = Atomics.load(cells, STATE)
      const waiting = state >>> 16
      if (waiting === 0 && (state & MAX_COUNT) < limit) {
        if (Atomics.compareExchange(cells, STATE, state, state + 1) !== state) continue
        Atomics.add(cells, this.cell(USED), 1)
        return 'entered'
      }
      if (waiting >= queueSize) return 'full'
      if (Atomics.compareExchange(cells, STATE, state, (state + ONE_WAITING) | 0) !== state) continue
      Atomics.add(cells, this.cell(WAITING), 1)
      return 'queued'
    }
  }

  /** Publishes the oldest waiting ticket of this thread; 0 for none. */
  publishHead(ticket: number): void {
    this.touch(this.#nowMs())
    Atomics.store(this.cells, this.cell(HEAD), ticket)
  }

  /** Exchanges the oldest ticket of this thread for a permit if it is the oldest of all threads; then call `publishHead`. */
  takeNext(limit: number): boolean {
    const cells = this.cells
    const nowMs = this.#nowMs()
    this.touch(nowMs)
    if (Atomics.load(cells, this.cell(HEAD)) === 0 || this.oldestColumn(HEAD, nowMs) !== this.column)
      return false
    Atomics.sub(cells, this.cell(WAITING), 1)
    for (;;) {
      const state = Atomics.load(cells, STATE)
      if ((state & MAX_COUNT) >= limit) {
        Atomics.add(cells, this.cell(WAITING), 1)
        return false
      }
      if (Atomics.compareExchange(cells, STATE, state, (state + 1 - ONE_WAITING) | 0) !== state) continue
      Atomics.add(cells, this.cell(USED), 1)
      return true
    }
  }

  /** Removes a waiting request; call `publishHead` and `passOn` afterwards. */
  leave(): void {
    Atomics.sub(this.cells, this.cell(WAITING), 1)
    Atomics.sub(this.cells, STATE, ONE_WAITING)
  }

  /** @returns whether requests wait, so that `passOn` must be called */
  release(): boolean {
    Atomics.sub(this.cells, this.cell(USED), 1)
    const before = Atomics.sub(this.cells, STATE, 1)
    return before >>> 16 !== 0
  }

  /**
   * Wakes the thread whose request is next if a permit is free.
   * @returns true if that thread is this one
   */
  passOn(limit: number): boolean {
    const { inUse, waiting } = this.use
    if (waiting === 0 || inUse >= limit) return false
    const column = this.oldestColumn(HEAD, this.#nowMs())
    if (column === this.column) return true
    if (column >= 0) this.wake(column)
    return false
  }

  /** Releases what a dead thread of this column held. Call before the thread serves. */
  reset(): void {
    const cells = this.cells
    Atomics.store(cells, this.cell(HEAD), 0)
    const used = Atomics.exchange(cells, this.cell(USED), 0)
    const waiting = Atomics.exchange(cells, this.cell(WAITING), 0)
    if (used !== 0 || waiting !== 0) Atomics.sub(cells, STATE, used + waiting * ONE_WAITING)
  }
}
