/**
 * Cells of shared memory for requests that wait on several threads: a column per thread, tickets in the order of arrival
 * over all threads, and wake-ups. @hot
 */

/** A thread that has not checked its queue for this long is skipped, because it died or hangs. Milliseconds. */
const STALE_MS = 2_000

// The first cells of a column.
/** Incremented to wake the thread, which waits on it. */
const WAKE = 0
/** When the thread last checked its queue, in wrapping milliseconds. */
const SEEN = 1
/** First cell of a column that a subclass defines. */
export const OWN_CELLS = 2

/** Bytes of a block with that many cells before the columns, the last of which counts the tickets. */
export function bytesOfColumns(header: number, columns: number, columnCells: number): number {
  return (header + columns * columnCells) * Int32Array.BYTES_PER_ELEMENT
}

export abstract class ThreadColumns {
  readonly column: number
  protected readonly cells: Int32Array
  protected readonly columns: number
  readonly #header: number
  readonly #columnCells: number

  /** @param column of this thread, 0-based */
  constructor(memory: SharedArrayBuffer, column: number, header: number, columnCells: number) {
    this.cells = new Int32Array(memory)
    this.columns = (this.cells.length - header) / columnCells
    if (!(column < this.columns))
      throw new RangeError(`thread column must be below ${this.columns} (got ${column})`)
    this.column = column
    this.#header = header
    this.#columnCells = columnCells
  }

  /** @returns the position in the order of arrival over all threads; never 0 */
  takeTicket(): number {
    return (Atomics.add(this.cells, this.#header - 1, 1) + 1) | 0 || this.takeTicket()
  }

  /** Records that this thread checks its queues. */
  touch(nowMs: number): void {
    Atomics.store(this.cells, this.cell(SEEN), nowMs | 0)
  }

  wake(column: number): void {
    const cell = this.cell(WAKE, column)
    Atomics.add(this.cells, cell, 1)
    Atomics.notify(this.cells, cell)
  }

  /** Resolves when another thread wakes this one. */
  async nextWake(): Promise<void> {
    const cell = this.cell(WAKE)
    await Atomics.waitAsync(this.cells, cell, Atomics.load(this.cells, cell)).value
  }

  /**
   * Column whose thread has the oldest ticket; -1 if no request waits. Tickets wrap around, so their difference is compared.
   * @param head cell with the oldest waiting ticket of a thread, 0 if none
   */
  protected oldestColumn(head: number, nowMs: number): number {
    let oldest = -1
    let ticket = 0
    for (let column = 0; column < this.columns; column++) {
      const own = Atomics.load(this.cells, this.cell(head, column))
      if (own === 0 || (oldest >= 0 && ((own - ticket) | 0) > 0)) continue
      const seenMs = Atomics.load(this.cells, this.cell(SEEN, column))
      if (column !== this.column && (((nowMs | 0) - seenMs) | 0) > STALE_MS) continue
      oldest = column
      ticket = own
    }
    return oldest
  }

  protected cell(which: number, column = this.column): number {
    return this.#header + column * this.#columnCells + which
  }
}
