/**
 * Stocks of granted tokens in shared memory of fixed size: a set-associative hash table, whose rows control alone assigns.
 * Every thread takes tokens. @hot
 *
 * A stock is valid until the end of its window. Control empties a stock before it changes its window, so that a thread that
 * has read the old end takes nothing of the new window too early.
 */

const SET_ROWS = 8
/** Cells before the rows. */
const HEADER_CELLS = 8
/** Cell of the parts into which limits are divided while the engine is away; 0 while it answers. */
const SHARES = 0
const ROW_CELLS = 8
const KEY_LOW = 0
const KEY_HIGH = 1
/** Negative after an overrun. */
const TOKENS = 2
/** End of the window, wrapping milliseconds. */
const ENDS_AT = 3
/** Control is not asked before this time, wrapping milliseconds; 0 for no such time. */
const REFUSED_UNTIL = 4
const WINDOW = 5
/** Tokens taken since the start, wrapping. */
const TAKEN = 6

/** The result of `take` if the stock is empty and control must be asked. */
export const ASK = -1

export interface Stock {
  readonly tokens: number
  readonly isOver: boolean
  readonly isRefused: boolean
}

export class AllowanceMemory {
  readonly #cells: Int32Array
  readonly #sets: number

  /** Bytes for at least that many buckets. */
  static bytes(buckets: number): number {
    const rows = Math.max(1, Math.ceil(buckets / SET_ROWS)) * SET_ROWS
    return (HEADER_CELLS + rows * ROW_CELLS) * Int32Array.BYTES_PER_ELEMENT
  }

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory)
    this.#sets = (this.#cells.length - HEADER_CELLS) / ROW_CELLS / SET_ROWS
  }

  /** Parts into which limits are divided while the engine is away; 0 while it answers. */
  get shares(): number {
    return Atomics.load(this.#cells, SHARES)
  }

  set shares(shares: number) {
    Atomics.store(this.#cells, SHARES, shares)
  }

  /** Row of a key; -1 if it has none. */
  find(low: number, high: number): number {
    const first = this.#firstRow(low)
    for (let row = first; row < first + SET_ROWS * ROW_CELLS; row += ROW_CELLS)
      if (this.holds(row, low, high)) return row
    return -1
  }

  /** Whether the row is still that of the key. */
  holds(row: number, low: number, high: number): boolean {
    return (
      Atomics.load(this.#cells, row + KEY_LOW) === low && Atomics.load(this.#cells, row + KEY_HIGH) === high
    )
  }

  /**
   * Takes tokens if the stock has them; none can be taken unless there was an overrun.
   * @returns 0 if taken; milliseconds until the window ends if no more are granted; ASK otherwise
   */
  take(row: number, tokens: number, nowMs: number): number {
    const cells = this.#cells
    if (tokens === 0 && Atomics.load(cells, row + TOKENS) >= 0) return 0
    const now = nowMs | 0
    const restMs = (Atomics.load(cells, row + ENDS_AT) - now) | 0
    if (restMs > 0) {
      for (;;) {
        const stock = Atomics.load(cells, row + TOKENS)
        if (stock < tokens) break
        if (Atomics.compareExchange(cells, row + TOKENS, stock, stock - tokens) !== stock) continue
        Atomics.add(cells, row + TAKEN, tokens)
        return 0
      }
    }
    const until = Atomics.load(cells, row + REFUSED_UNTIL)
    return until !== 0 && ((until - now) | 0) > 0 ? Math.max(1, restMs) : ASK
  }

  /** Takes tokens unconditionally, also below zero. */
  charge(row: number, tokens: number): void {
    Atomics.sub(this.#cells, row + TOKENS, tokens)
    Atomics.add(this.#cells, row + TAKEN, tokens)
  }

  /** Puts tokens back, unless their window is over. */
  putBack(row: number, tokens: number, window: number): void {
    if (Atomics.load(this.#cells, row + WINDOW) === window) Atomics.add(this.#cells, row + TOKENS, tokens)
  }

  window(row: number): number {
    return Atomics.load(this.#cells, row + WINDOW)
  }

  /** Tokens taken from the row since the start, wrapping. */
  taken(row: number): number {
    return Atomics.load(this.#cells, row + TAKEN)
  }

  /** Control only, as all that follows. */
  stock(row: number, nowMs: number): Stock {
    const now = nowMs | 0
    const until = Atomics.load(this.#cells, row + REFUSED_UNTIL)
    return {
      tokens: Atomics.load(this.#cells, row + TOKENS),
      isOver: ((Atomics.load(this.#cells, row + ENDS_AT) - now) | 0) <= 0,
      isRefused: until !== 0 && ((until - now) | 0) > 0,
    }
  }

  /** Assigns a row of the key's set. @param isFree whether a row is unused */
  claim(low: number, high: number, isFree: (row: number) => boolean): number {
    const first = this.#firstRow(low)
    let row = first
    while (row < first + (SET_ROWS - 1) * ROW_CELLS && !isFree(row)) row += ROW_CELLS
    this.clear(row)
    Atomics.store(this.#cells, row + KEY_HIGH, high)
    Atomics.store(this.#cells, row + KEY_LOW, low)
    return row
  }

  /** Adds granted tokens. @param endsAtMs earliest end of their window */
  grant(row: number, tokens: number, window: number, endsAtMs: number): void {
    const cells = this.#cells
    if (Atomics.load(cells, row + WINDOW) !== (window | 0)) {
      // An overrun is paid in the next window.
      const rest = Math.min(0, Atomics.exchange(cells, row + TOKENS, 0))
      Atomics.store(cells, row + WINDOW, window | 0)
      Atomics.store(cells, row + ENDS_AT, endsAtMs | 0)
      Atomics.add(cells, row + TOKENS, rest)
    }
    Atomics.add(cells, row + TOKENS, tokens)
  }

  refuse(row: number, untilMs: number): void {
    Atomics.store(this.#cells, row + REFUSED_UNTIL, untilMs | 0 || 1)
  }

  /** Takes up to that many tokens out of the stock. @returns tokens taken */
  withdraw(row: number, tokens: number): number {
    for (;;) {
      const stock = Atomics.load(this.#cells, row + TOKENS)
      const taken = Math.max(0, Math.min(stock, tokens))
      if (Atomics.compareExchange(this.#cells, row + TOKENS, stock, stock - taken) === stock) return taken
    }
  }

  /** Empties the stock of a bucket that is no longer used. The row has no key then, so that nothing is charged to it. */
  clear(row: number): void {
    Atomics.store(this.#cells, row + KEY_LOW, 0)
    Atomics.store(this.#cells, row + KEY_HIGH, 0)
    Atomics.store(this.#cells, row + TOKENS, 0)
    Atomics.store(this.#cells, row + ENDS_AT, 0)
    Atomics.store(this.#cells, row + REFUSED_UNTIL, 0)
    Atomics.store(this.#cells, row + WINDOW, 0)
  }

  #firstRow(low: number): number {
    return HEADER_CELLS + ((low >>> 0) % this.#sets) * SET_ROWS * ROW_CELLS
  }
}
