/**
 * Counts of the scheduler over all threads in shared memory: slots in use by class, waiting requests by class and
 * thread. Contains no decisions. @hot
 *
 * The counts of the four classes lie in one 64-bit word, 16 bits each, so that taking a slot is one compare-and-swap.
 * The word is incremented before the column of the thread and decremented after it: a thread that dies in between
 * leaves the word one too high, never below zero, where one count would borrow from the next.
 */

/** Classes that one word can count, and the most it can count of each. */
export const SLOT_CLASSES = 4
export const MAX_SLOTS = 65_535
/** A thread that has not checked its queues for this long is skipped, because it died or hangs. Milliseconds. */
const STALE_MS = 2_000

const BITS = 16n
const ONE: readonly bigint[] = [0, 1, 2, 3].map((priority) => 1n << (BITS * BigInt(priority)))

/** The 64-bit words. */
const USED_WORD = 0
const WAITING_WORD = 1
/** The 32-bit cells behind them. */
const TICKETS = 4
const ALL_VICTIMS = 5
const FIRST_COLUMN = 6
const COLUMN_CELLS = 20
const USED = 0
const WAITING = 4
/** Oldest waiting ticket of each class on the thread, 0 if none, and the start of its wait in wrapping milliseconds. */
const HEAD = 8
const SINCE = 12
const WAKE = 16
const SEEN = 17
/** Requests of the thread that are being preempted. */
const VICTIMS = 18

/** The oldest waiting request of a class. */
export interface Head {
  readonly column: number
  readonly waitedMs: number
}

export class SharedSlots {
  readonly column: number
  readonly #words: BigInt64Array
  readonly #cells: Int32Array
  readonly #columns: number

  static bytes(columns: number): number {
    return (FIRST_COLUMN + columns * COLUMN_CELLS) * Int32Array.BYTES_PER_ELEMENT
  }

  /** @param column of this thread, 0-based */
  constructor(memory: SharedArrayBuffer, column: number) {
    this.#words = new BigInt64Array(memory, 0, 2)
    this.#cells = new Int32Array(memory)
    this.#columns = (this.#cells.length - FIRST_COLUMN) / COLUMN_CELLS
    this.column = column
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
      Atomics.add(this.#cells, this.#cell(USED + priority), 1)
      return true
    }
  }

  release(priority: number): void {
    Atomics.sub(this.#cells, this.#cell(USED + priority), 1)
    Atomics.sub(this.#words, USED_WORD, ONE[priority])
  }

  /** Joins the queue of a class. @returns a ticket, or 0 if the queue is full */
  joinQueue(priority: number, queueSize: number): number {
    const words = this.#words
    for (;;) {
      const before = Atomics.load(words, WAITING_WORD)
      if (countsOf(before)[priority] >= queueSize) return 0
      if (Atomics.compareExchange(words, WAITING_WORD, before, before + ONE[priority]) !== before) continue
      Atomics.add(this.#cells, this.#cell(WAITING + priority), 1)
      return this.#takeTicket()
    }
  }

  /** Leaves the queue of a class; call `publishHead` afterwards. */
  leaveQueue(priority: number): void {
    Atomics.sub(this.#cells, this.#cell(WAITING + priority), 1)
    Atomics.sub(this.#words, WAITING_WORD, ONE[priority])
  }

  /** Publishes the oldest waiting ticket of a class on this thread; 0 for none. */
  publishHead(priority: number, ticket: number, sinceMs: number): void {
    Atomics.store(this.#cells, this.#cell(SINCE + priority), sinceMs | 0)
    Atomics.store(this.#cells, this.#cell(HEAD + priority), ticket)
  }

  /** Records that this thread checks its queues. */
  touch(nowMs: number): void {
    Atomics.store(this.#cells, this.#cell(SEEN), nowMs | 0)
  }

  /** The oldest waiting request of a class, over all threads. Tickets wrap around, so their difference is compared. */
  head(priority: number, nowMs: number): Head | null {
    const cells = this.#cells
    let column = -1
    let ticket = 0
    for (let one = 0; one < this.#columns; one++) {
      const start = FIRST_COLUMN + one * COLUMN_CELLS
      const head = Atomics.load(cells, start + HEAD + priority)
      if (head === 0 || (column >= 0 && ((head - ticket) | 0) > 0)) continue
      if (one !== this.column && (((nowMs | 0) - Atomics.load(cells, start + SEEN)) | 0) > STALE_MS) continue
      column = one
      ticket = head
    }
    if (column < 0) return null
    const sinceMs = Atomics.load(cells, FIRST_COLUMN + column * COLUMN_CELLS + SINCE + priority)
    return { column, waitedMs: ((nowMs | 0) - sinceMs) | 0 }
  }

  wake(column: number): void {
    const cell = FIRST_COLUMN + column * COLUMN_CELLS + WAKE
    Atomics.add(this.#cells, cell, 1)
    Atomics.notify(this.#cells, cell)
  }

  /** Resolves when another thread wakes this one. */
  async nextWake(): Promise<void> {
    const cell = this.#cell(WAKE)
    await Atomics.waitAsync(this.#cells, cell, Atomics.load(this.#cells, cell)).value
  }

  /** Wakes every other thread that runs requests below a class, so that it can preempt one. */
  wakeBelow(priority: number): void {
    for (let column = 0; column < this.#columns; column++)
      if (column !== this.column && this.#runsBelow(priority, column)) this.wake(column)
  }

  /** Counts one more preemption if `isNeeded` returns true for the current count. */
  claimVictim(isNeeded: (victims: number) => boolean): boolean {
    const cells = this.#cells
    for (;;) {
      const before = Atomics.load(cells, ALL_VICTIMS)
      if (!isNeeded(before)) return false
      if (Atomics.compareExchange(cells, ALL_VICTIMS, before, before + 1) !== before) continue
      Atomics.add(cells, this.#cell(VICTIMS), 1)
      return true
    }
  }

  /** A preempted request has ended. */
  victimEnded(): void {
    Atomics.sub(this.#cells, this.#cell(VICTIMS), 1)
    Atomics.sub(this.#cells, ALL_VICTIMS, 1)
  }

  /** Requests being preempted, over all threads. */
  get victims(): number {
    return Atomics.load(this.#cells, ALL_VICTIMS)
  }

  /** Releases what a dead thread of this column held. Call before the thread serves. */
  reset(): void {
    const cells = this.#cells
    for (let priority = 0; priority < SLOT_CLASSES; priority++) {
      Atomics.store(cells, this.#cell(HEAD + priority), 0)
      const used = Atomics.exchange(cells, this.#cell(USED + priority), 0)
      const waiting = Atomics.exchange(cells, this.#cell(WAITING + priority), 0)
      if (used !== 0) Atomics.sub(this.#words, USED_WORD, ONE[priority] * BigInt(used))
      if (waiting !== 0) Atomics.sub(this.#words, WAITING_WORD, ONE[priority] * BigInt(waiting))
    }
    Atomics.sub(cells, ALL_VICTIMS, Atomics.exchange(cells, this.#cell(VICTIMS), 0))
  }

  #runsBelow(priority: number, column: number): boolean {
    const start = FIRST_COLUMN + column * COLUMN_CELLS + USED
    for (let lower = priority + 1; lower < SLOT_CLASSES; lower++)
      if (Atomics.load(this.#cells, start + lower) > 0) return true
    return false
  }

  #takeTicket(): number {
    return (Atomics.add(this.#cells, TICKETS, 1) + 1) | 0 || this.#takeTicket()
  }

  #cell(which: number): number {
    return FIRST_COLUMN + this.column * COLUMN_CELLS + which
  }
}

function countsOf(word: bigint): number[] {
  const low = Number(BigInt.asUintN(32, word))
  const high = Number(BigInt.asUintN(32, word >> 32n))
  return [low & 0xffff, low >>> 16, high & 0xffff, high >>> 16]
}
