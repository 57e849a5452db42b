/**
 * Token buckets by key in shared memory of fixed size: a set-associative hash table. The row of a full bucket is free,
 * because a new bucket is full too. If all rows of a set are in use, the fullest bucket is evicted.
 */
import { hash } from 'node:crypto'

const SET_ROWS = 8
/** A row holds the key, then the bucket. */
const ROW_WORDS = 2

/** Hash of a name; the same on every thread. */
export type BucketKey = bigint

export function bucketKey(...parts: readonly string[]): BucketKey {
  const digest = hash('sha256', parts.map((part) => `${part.length}:${part}`).join(''), 'buffer')
  // 0 marks an unused row.
  return digest.readBigInt64LE(0) || 1n
}

export class BucketTable {
  readonly #words: BigInt64Array
  readonly #sets: number

  static bytes(rows: number): number {
    return Math.max(1, Math.ceil(rows / SET_ROWS)) * SET_ROWS * ROW_WORDS * BigInt64Array.BYTES_PER_ELEMENT
  }

  constructor(memory: SharedArrayBuffer) {
    this.#words = new BigInt64Array(memory)
    this.#sets = this.#words.length / ROW_WORDS / SET_ROWS
  }

  /** Memory for the functions of token-bucket.ts. */
  get words(): BigInt64Array {
    return this.#words
  }

  /** Index of the key's bucket, created if missing. Use it immediately: the row may be evicted. */
  find(key: BucketKey, nowNs: bigint): number {
    const first = Number(BigInt.asUintN(32, key) % BigInt(this.#sets)) * SET_ROWS * ROW_WORDS
    for (;;) {
      const known = this.#lookUp(first, key)
      if (known >= 0) return known + 1
      this.#claim(first, key, nowNs)
    }
  }

  /** Value of the key's bucket; 0, which is a full bucket, if it has no row. */
  peek(key: BucketKey): bigint {
    const first = Number(BigInt.asUintN(32, key) % BigInt(this.#sets)) * SET_ROWS * ROW_WORDS
    const known = this.#lookUp(first, key)
    return known < 0 ? 0n : Atomics.load(this.#words, known + 1)
  }

  /** Returns the first match, so that threads agree if two of them created a row. */
  #lookUp(first: number, key: BucketKey): number {
    for (let row = first; row < first + SET_ROWS * ROW_WORDS; row += ROW_WORDS)
      if (Atomics.load(this.#words, row) === key) return row
    return -1
  }

  #claim(first: number, key: BucketKey, nowNs: bigint): void {
    const words = this.#words
    let fullest = first
    let moment = Atomics.load(words, first + 1)
    for (let row = first; row < first + SET_ROWS * ROW_WORDS; row += ROW_WORDS) {
      const other = Atomics.load(words, row + 1)
      if (Atomics.load(words, row) !== 0n && other > nowNs && other >= moment) continue
      fullest = row
      moment = other
      if (other <= nowNs) break
    }
    const before = Atomics.load(words, fullest)
    if (before === key) return
    // If another thread claimed the row, the caller looks up again.
    if (Atomics.compareExchange(words, fullest, before, key) === before && moment > nowNs)
      Atomics.store(words, fullest + 1, 0n)
  }
}
