/**
 * Buckets by key in a fixed piece of shared memory: any number of tenants may come, only the busy ones take room.
 * A full bucket is as good as none, so its row is free; with all rows of a key's set busy, the fullest of them goes.
 */
import { hash } from 'node:crypto'

/** Rows in which a key may lie. */
const SET_ROWS = 8
/** A row: the key, then the bucket. */
const ROW_WORDS = 2

/** Stands for the bucket of one name, on every thread alike. */
export type BucketKey = bigint

/** Two names share a key with a chance of one in 2^64. */
export function bucketKey(...parts: readonly string[]): BucketKey {
  const digest = hash('sha256', parts.map((part) => `${part.length}:${part}`).join(''), 'buffer')
  // 0 marks a row that was never used.
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

  /** Where the functions of buckets work. */
  get words(): BigInt64Array {
    return this.#words
  }

  /** Index of the key's bucket, which is made when there is none. Use it at once: rows change hands. */
  find(key: BucketKey, nowNs: bigint): number {
    const first = Number(BigInt.asUintN(32, key) % BigInt(this.#sets)) * SET_ROWS * ROW_WORDS
    for (;;) {
      const known = this.#lookUp(first, key)
      if (known >= 0) return known + 1
      this.#claim(first, key, nowNs)
    }
  }

  /** The moment of the key's bucket; 0, a full one, when it has no row. */
  peek(key: BucketKey): bigint {
    const first = Number(BigInt.asUintN(32, key) % BigInt(this.#sets)) * SET_ROWS * ROW_WORDS
    const known = this.#lookUp(first, key)
    return known < 0 ? 0n : Atomics.load(this.#words, known + 1)
  }

  /** The first row of the set wins, so that two threads that made one each agree. */
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
    // Another thread that was faster is found by the next look.
    if (Atomics.compareExchange(words, fullest, before, key) === before && moment > nowNs)
      Atomics.store(words, fullest + 1, 0n)
  }
}
