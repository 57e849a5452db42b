/**
 * Running requests by tenant over all threads, in shared memory of fixed size: a set-associative hash table. @hot
 *
 * One 64-bit word holds a tenant's key (high 48 bits) and its count (low 16 bits), so that taking a row and counting are
 * one compare-and-swap; the row of a tenant without running requests is free. Each thread also counts in a column of its
 * own, so that the requests of a thread that died can be released. The word is incremented before the column and
 * decremented after it: a thread that dies in between leaves the word one too high, never below what others hold.
 */
import { type BucketKey, bucketKey } from '../rates/bucket-table.ts'

/** Most requests of one tenant that a word can count. */
export const MAX_RUNNING = 65_535
const SET_ROWS = 16
const COUNT_BITS = 16n
const COUNT_MASK = BigInt(MAX_RUNNING)

export class RunningTable {
  readonly #words: BigInt64Array
  /** Cells of the own column. */
  readonly #own: Uint16Array
  readonly #sets: number

  /** @param columns threads */
  static bytes(tenants: number, columns: number): number {
    return rowsFor(tenants) * (BigInt64Array.BYTES_PER_ELEMENT + columns * Uint16Array.BYTES_PER_ELEMENT)
  }

  /** @param tenants and memory as for `bytes` @param column of this thread, 0-based */
  constructor(memory: SharedArrayBuffer, tenants: number, column: number) {
    const rows = rowsFor(tenants)
    this.#words = new BigInt64Array(memory, 0, rows)
    const columns = rows * BigInt64Array.BYTES_PER_ELEMENT
    this.#own = new Uint16Array(memory, columns + column * rows * Uint16Array.BYTES_PER_ELEMENT, rows)
    this.#sets = rows / SET_ROWS
  }

  /**
   * Counts a request of the tenant if fewer than `limit` are running.
   * @returns the row to release; -1 if the limit is reached, or if other tenants use all rows of the set
   */
  enter(tenant: string, limit: number): number {
    const key = keyOf(tenant)
    const first = this.#firstRow(key)
    for (;;) {
      let row = -1
      let running = 0
      let free = -1
      for (let at = first; at < first + SET_ROWS; at++) {
        const word = Atomics.load(this.#words, at)
        const count = Number(word & COUNT_MASK)
        // Two threads may have taken a row for one tenant at the same time: both count.
        if (count > 0 && isOf(word, key)) {
          running += count
          if (row < 0) row = at
        } else if (count === 0 && free < 0) free = at
      }
      if (running >= limit) return -1
      const at = row < 0 ? free : row
      if (at < 0) return -1
      const before = Atomics.load(this.#words, at)
      const count = before & COUNT_MASK
      if (count !== 0n && !isOf(before, key)) continue
      if (Atomics.compareExchange(this.#words, at, before, BigInt.asIntN(64, key | (count + 1n))) !== before)
        continue
      Atomics.add(this.#own, at, 1)
      if (row >= 0 || this.#running(key, first) <= limit) return at
      this.release(at)
    }
  }

  release(row: number): void {
    Atomics.sub(this.#own, row, 1)
    Atomics.sub(this.#words, row, 1n)
  }

  running(tenant: string): number {
    const key = keyOf(tenant)
    return this.#running(key, this.#firstRow(key))
  }

  /** Releases what a dead thread of this column held. Call before the thread serves. */
  reset(): void {
    for (let row = 0; row < this.#own.length; row++) {
      const held = Atomics.exchange(this.#own, row, 0)
      if (held > 0) Atomics.sub(this.#words, row, BigInt(held))
    }
  }

  #running(key: BucketKey, first: number): number {
    let running = 0
    for (let at = first; at < first + SET_ROWS; at++) {
      const word = Atomics.load(this.#words, at)
      if (isOf(word, key)) running += Number(word & COUNT_MASK)
    }
    return running
  }

  #firstRow(key: BucketKey): number {
    return Number((key >> COUNT_BITS) % BigInt(this.#sets)) * SET_ROWS
  }
}

function rowsFor(tenants: number): number {
  return Math.ceil(tenants / SET_ROWS) * SET_ROWS
}

/** @returns a number of 64 bits whose low 16 are 0 */
function keyOf(tenant: string): BucketKey {
  return BigInt.asUintN(64, bucketKey(tenant)) & ~COUNT_MASK
}

function isOf(word: bigint, key: BucketKey): boolean {
  return (BigInt.asUintN(64, word) & ~COUNT_MASK) === key
}
