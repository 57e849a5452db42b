/**
 * Counts of the scheduler over all threads in shared memory: slots in use by class, waiting requests by class and
 * thread. Contains no decisions. @hot
 *
 * The counts of the four classes lie in one 64-bit word, 16 bits each, so that taking a slot is one compare-and-swap.
 * The word is incremented before the column of the thread and decremented after it: a thread that dies in between
 * leaves the word one too high, never below zero, where one count would borrow from the next.
 */

import { bytesOfColumns, OWN_CELLS, ThreadColumns } from '../thread-columns.ts'

/** Classes that one word can count, and the most it can count of each. */
export const SLOT_CLASSES = 4
export const MAX_SLOTS = 65_535

const BITS = 16n
const ONE: readonly bigint[] = [0, 1, 2, 3].map((priority) => 1n << (BITS * BigInt(priority)))

/** The 64-bit words. */
const USED_WORD = 0
const WAITING_WORD = 1
/** The 32-bit cells behind them. */
const ALL_VICTIMS = 4
const HEADER_CELLS = 6
const USED = OWN_CELLS
const WAITING = OWN_CELLS + 4
/** Oldest waiting ticket of each class on the thread, 0 if none, and the start of its wait in wrapping milliseconds. */
const HEAD = OWN_CELLS + 8
const SINCE = OWN_CELLS + 12
/** Requests of the thread that are being preempted. */
const VICTIMS = OWN_CELLS + 16
const COLUMN_CELLS = OWN_CELLS + 17

/** The oldest waiting request of a class. */
export interface Head {
  readonly column: number
  readonly waitedMs: number
}

export class SharedSlots extends ThreadColumns {
  readonly #words: BigInt64Array

  static bytes(columns: number): number {
    return bytesOfColumns(HEADER_CELLS, columns, COLUMN_CELLS)
  }

  /** @param column of this thread, 0-based */
  constructor(memory: SharedArrayBuffer, column: number) {
    super(memory, column, HEADER_CELLS, COLUMN_CELLS)
    this.#words = new BigInt64Array(memory, 0, 2)
  }

  /** Slots in use by each class, over all threads. */
  used(): number[] {
    return countsOf(Atomics.load(this.#words, USED_WORD))
  }

  /** Requests of each class that wait, over all threads. */
  waiting(): number[] {
    return countsOf(Atomics.load(this.#words, WAITING_WORD))
  }

  get isAnyoneWaiting(): boolean {
    return Atomics.load(this.#words, WAITING_WORD) !== 0n
  }

  /** Takes a slot if `isAllowed` returns true for the current counts. */
  take(priority: number, isAllowed: (used: readonly number[]) => boolean): boolean {
    const words = this.#words
    for (;;) {
      const before = Atomics.load(words, USED_WORD)
      if (!isAllowed(countsOf(before))) return false
      if (Atomics.compareExchange(words, USED_WORD, before, before + ONE[priority]) !== before) continue
      Atomics.add(this.cells, this.cell(USED + priority), 1)
      return true
    }
  }

  release(priority: number): void {
    Atomics.sub(this.cells, this.cell(USED + priority), 1)
    Atomics.sub(this.#words, USED_WORD, ONE[priority])
  }

  /** Joins the queue of a class. @returns a ticket, or 0 if the queue is full */
  joinQueue(priority: number, queueSize: number): number {
    const words = this.#words
    for (;;) {
      const before = Atomics.load(words, WAITING_WORD)
      if (countsOf(before)[priority] >= queueSize) return 0
      if (Atomics.compareExchange(words, WAITING_WORD, before, before + ONE[priority]) !== before) continue
      Atomics.add(this.cells, this.cell(WAITING + priority), 1)
      return this.takeTicket()
    }
  }

  /** Leaves the queue of a class; call `publishHead` afterwards. */
  leaveQueue(priority: number): void {
    Atomics.sub(this.cells, this.cell(WAITING + priority), 1)
    Atomics.sub(this.#words, WAITING_WORD, ONE[priority])
  }

  /** Publishes the oldest waiting ticket of a class on this thread; 0 for none. */
  publishHead(priority: number, ticket: number, sinceMs: number): void {
    Atomics.store(this.cells, this.cell(SINCE + priority), sinceMs | 0)
    Atomics.store(this.cells, this.cell(HEAD + priority), ticket)
  }

  /** The oldest waiting request of a class, over all threads. */
  head(priority: number, nowMs: number): Head | null {
    const column = this.oldestColumn(HEAD + priority, nowMs)
    if (column < 0) return null
    const sinceMs = Atomics.load(this.cells, this.cell(SINCE + priority, column))
    return { column, waitedMs: ((nowMs | 0) - sinceMs) | 0 }
  }

  /** Wakes every other thread that runs requests below a class, so that it can preempt one. */
  wakeBelow(priority: number): void {
    for (let column = 0; column < this.columns; column++)
      if (column !== this.column && this.#runsBelow(priority, column)) this.wake(column)
  }

  /** Counts one more preemption if `isNeeded` returns true for the current count. */
  claimVictim(isNeeded: (victims: number) => boolean): boolean {
    const cells = this.cells
    for (;;) {
      const before = Atomics.load(cells, ALL_VICTIMS)
      if (!isNeeded(before)) return false
      if (Atomics.compareExchange(cells, ALL_VICTIMS, before, before + 1) !== before) continue
      Atomics.add(cells, this.cell(VICTIMS), 1)
      return true
    }
  }

  /** A preempted request has ended. */
  victimEnded(): void {
    Atomics.sub(this.cells, this.cell(VICTIMS), 1)
    Atomics.sub(this.cells, ALL_VICTIMS, 1)
  }

  /** Requests being preempted, over all threads. */
  get victims(): number {
    return Atomics.load(this.cells, ALL_VICTIMS)
  }

  /** Releases what a dead thread of this column held. Call before the thread serves. */
  reset(): void {
    const cells = this.cells
    for (let priority = 0; priority < SLOT_CLASSES; priority++) {
      Atomics.store(cells, this.cell(HEAD + priority), 0)
      const used = Atomics.exchange(cells, this.cell(USED + priority), 0)
      const waiting = Atomics.exchange(cells, this.cell(WAITING + priority), 0)
      if (used !== 0) Atomics.sub(this.#words, USED_WORD, ONE[priority] * BigInt(used))
      if (waiting !== 0) Atomics.sub(this.#words, WAITING_WORD, ONE[priority] * BigInt(waiting))
    }
    Atomics.sub(cells, ALL_VICTIMS, Atomics.exchange(cells, this.cell(VICTIMS), 0))
  }

  #runsBelow(priority: number, column: number): boolean {
    for (let lower = priority + 1; lower < SLOT_CLASSES; lower++)
      if (Atomics.load(this.cells, this.cell(USED + lower, column)) > 0) return true
    return false
  }
}

function countsOf(word: bigint): number[] {
  const low = Number(BigInt.asUintN(32, word))
  const high = Number(BigInt.asUintN(32, word >> 32n))
  return [low & 0xffff, low >>> 16, high & 0xffff, high >>> 16]
}
