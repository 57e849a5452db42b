/** What running requests of all threads hold of budgets: a column of shared memory per thread, which a new thread clears. @hot */
import type { BudgetUse } from './usage-record.ts'

/** For budgets; if there are more, they are assigned anew, and two may share a place until their requests end. */
export const HELD_PLACES = 8_192
/** Tokens and cost. */
const CELLS = 2

export class HeldUse {
  readonly #cells: BigInt64Array
  readonly #column: number

  static bytes(columns: number): number {
    return columns * HELD_PLACES * CELLS * BigInt64Array.BYTES_PER_ELEMENT
  }

  /** @param column of this thread, 0-based */
  constructor(memory: SharedArrayBuffer, column: number) {
    this.#cells = new BigInt64Array(memory)
    this.#column = column * HELD_PLACES * CELLS
  }

  /** Releases what a dead thread of this column held. Call before the thread serves. */
  reset(): void {
    this.#cells.fill(0n, this.#column, this.#column + HELD_PLACES * CELLS)
  }

  /** @param sign -1 to release */
  add(place: number, { tokens, costNano }: BudgetUse, sign = 1): void {
    const at = this.#column + place * CELLS
    Atomics.add(this.#cells, at, BigInt(sign * tokens))
    Atomics.add(this.#cells, at + 1, BigInt(sign * costNano))
  }

  /** Of all threads. */
  total(place: number): BudgetUse {
    let [tokens, costNano] = [0n, 0n]
    for (let at = place * CELLS; at < this.#cells.length; at += HELD_PLACES * CELLS) {
      tokens += Atomics.load(this.#cells, at)
      costNano += Atomics.load(this.#cells, at + 1)
    }
    return { tokens: Number(tokens), costNano: Number(costNano) }
  }
}
