/**
 * Table of prompt prefixes and the workers that received them, of fixed size, for all models, in memory that all threads
 * share.
 * @hot
 *
 * ```
 * header | bucket: eight keys (low lanes), eight stamps, eight records: high lane, bytes, four holders | bucket | …
 * ```
 * A bucket is 256 bytes; its keys and stamps share the first cache line, which is all that most lookups read. A new
 * prefix replaces the least recently used entry of its bucket.
 * Only counters are atomic. Concurrent writes to one entry may leave a prefix that never matches or a wrong holder,
 * which causes one less suitable pick; readers check that a holder is a candidate.
 */
import type { PolicyParts } from '#kernel'
import type { WorkerCounters } from '../worker-counters.ts'
import { MAX_PREFIXES, prefixEnds, prefixHighs, prefixLows } from './prefix-hashes.ts'

/** Workers stored per prefix. */
export const HOLDERS = 4

const ENTRY_BYTES = 32
const HEADER_CELLS = 16
const BUCKET = 8
const BUCKET_BITS = 3
/** Offset from an entry's key to its stamp. */
const TO_STAMP = BUCKET
/** Cells of a record. */
const HIGH = 0
const SPAN = 1
const HOLDER = 2
const RECORD_CELLS = HOLDER + HOLDERS
const RECORDS_AT = 2 * BUCKET
const BUCKET_CELLS = RECORDS_AT + BUCKET * RECORD_CELLS

/** Header cells: the logical clock (one tick per pick) and the start of the last sweep. */
const CLOCK = 0
export const SWEEP_ROUND = 1

const NONE = -1

export class PrefixTable {
  readonly cells: Int32Array
  readonly entryCount: number
  private readonly counters: WorkerCounters
  private readonly bucketMask: number
  /** Entries of the prefixes of the last `find`, or NONE. */
  private readonly found = new Int32Array(MAX_PREFIXES)
  /** True if the last worker that was added has replaced another. */
  protected wasFull = false

  /** @param maxBytes size of the table; rounded down to a power of two */
  constructor(shared: PolicyParts['shared'], maxBytes: number, counters: WorkerCounters) {
    this.entryCount = 1 << Math.floor(Math.log2(maxBytes / ENTRY_BYTES))
    const headerBytes = HEADER_CELLS * Int32Array.BYTES_PER_ELEMENT
    this.cells = new Int32Array(shared('prefixes', headerBytes + this.entryCount * ENTRY_BYTES))
    this.counters = counters
    this.bucketMask = this.entryCount / BUCKET - 1
  }

  get clock(): number {
    return this.cells[CLOCK]
  }

  /** Looks up the first `count` prefixes of `prefix-hashes.ts`, for `holder` and `insert`. */
  find(count: number): void {
    for (let i = 0; i < count; i++) this.found[i] = this.entryOf(prefixLows[i] || 1, prefixHighs[i])
  }

  /** Name of a holder of a found prefix; 0 for none. @param place 0 to HOLDERS - 1 */
  holder(prefix: number, place: number): number {
    const entry = this.found[prefix]
    return entry === NONE ? 0 : this.cells[recordAt(entry) + HOLDER + place]
  }

  /** Records that a worker receives a prompt with these prefixes. Call after `find`, with the same count. */
  insert(count: number, name: number): void {
    const stamp = Atomics.add(this.cells, CLOCK, 1) + 1
    let start = 0
    let added = 0
    for (let i = 0; i < count; i++) {
      const span = prefixEnds[i] - start
      start = prefixEnds[i]
      const low = prefixLows[i] || 1
      const entry = this.found[i]
      if (entry === NONE || this.cells[keyAt(entry)] !== low) {
        this.replace(low, prefixHighs[i], stamp, span, name)
        added += span
      } else {
        this.cells[keyAt(entry) + TO_STAMP] = stamp
        added += this.addHolder(entry, stamp, name)
      }
    }
    if (added > 0) this.counters.addCached(name, added)
  }

  /**
   * Records what another gateway has noted about a prefix. A worker is not added to a prefix that has four.
   *
   * @param span bytes of the prefix beyond the one before
   */
  learn(low: number, high: number, span: number, name: number): void {
    const key = low || 1
    const entry = this.entryOf(key, high)
    if (entry === NONE) {
      this.replace(key, high, this.clock, span, name)
      this.counters.addCached(name, span)
      return
    }
    if (!this.isFull(entry)) this.counters.addCached(name, this.addHolder(entry, this.clock, name))
  }

  low(entry: number): number {
    return this.cells[keyAt(entry)]
  }

  high(entry: number): number {
    return this.cells[recordAt(entry) + HIGH]
  }

  /** Whether the entry holds a prefix. */
  isUsed(entry: number): boolean {
    return this.cells[keyAt(entry)] !== 0
  }

  /** Picks since the entry was last used. */
  age(entry: number, clock: number): number {
    return (clock - this.cells[keyAt(entry) + TO_STAMP]) >>> 0
  }

  span(entry: number): number {
    return this.cells[recordAt(entry) + SPAN]
  }

  holderAt(entry: number, place: number): number {
    return this.cells[recordAt(entry) + HOLDER + place]
  }

  /** Removes a holder from the prefix, and the prefix with its last holder. */
  dropHolder(entry: number, place: number, name: number): void {
    const record = recordAt(entry)
    const cell = record + HOLDER + place
    if (Atomics.compareExchange(this.cells, cell, name, 0) !== name) return
    this.counters.addCached(name, -this.cells[record + SPAN])
    for (let other = 0; other < HOLDERS; other++) if (this.cells[record + HOLDER + other] !== 0) return
    this.cells[keyAt(entry)] = 0
  }

  private entryOf(low: number, high: number): number {
    const { cells } = this
    const bucket = low & this.bucketMask
    const keys = HEADER_CELLS + bucket * BUCKET_CELLS
    for (let i = 0; i < BUCKET; i++) {
      if (cells[keys + i] !== low) continue
      const entry = bucket * BUCKET + i
      if (cells[recordAt(entry) + HIGH] === high) return entry
    }
    return NONE
  }

  /**
   * Uses a free place, else that of a removed worker, else any.
   * @returns bytes added to the worker
   */
  protected addHolder(entry: number, stamp: number, name: number): number {
    const { cells } = this
    const record = recordAt(entry)
    let place = NONE
    for (let i = 0; i < HOLDERS; i++) {
      const other = cells[record + HOLDER + i]
      if (other === name) return 0
      if (place === NONE && (other === 0 || !this.counters.isCurrent(other))) place = i
    }
    this.wasFull = place === NONE
    if (place === NONE) place = stamp & (HOLDERS - 1)
    const span = cells[record + SPAN]
    const old = Atomics.exchange(cells, record + HOLDER + place, name)
    if (old !== 0) this.counters.addCached(old, -span)
    return span
  }

  private isFull(entry: number): boolean {
    for (let i = 0; i < HOLDERS; i++) {
      const other = this.cells[recordAt(entry) + HOLDER + i]
      if (other === 0 || !this.counters.isCurrent(other)) return false
    }
    return true
  }

  protected replace(low: number, high: number, stamp: number, span: number, name: number): void {
    const { cells } = this
    const entry = this.victim(low, stamp)
    const key = keyAt(entry)
    const record = recordAt(entry)
    // Clears the key first, so that no lookup matches a half-written entry.
    cells[key] = 0
    const oldSpan = cells[record + SPAN]
    for (let i = 0; i < HOLDERS; i++) {
      const old = cells[record + HOLDER + i]
      if (old === 0) continue
      cells[record + HOLDER + i] = 0
      this.counters.addCached(old, -oldSpan)
    }
    cells[record + HIGH] = high
    cells[record + SPAN] = span
    cells[record + HOLDER] = name
    cells[key + TO_STAMP] = stamp
    cells[key] = low
  }

  /** An empty entry of the bucket, or the least recently used one. */
  private victim(low: number, clock: number): number {
    const { cells } = this
    const bucket = low & this.bucketMask
    const keys = HEADER_CELLS + bucket * BUCKET_CELLS
    let oldest = 0
    let oldestAge = -1
    for (let i = 0; i < BUCKET; i++) {
      if (cells[keys + i] === 0) return bucket * BUCKET + i
      const age = (clock - cells[keys + i + TO_STAMP]) >>> 0
      if (age <= oldestAge) continue
      oldest = i
      oldestAge = age
    }
    return bucket * BUCKET + oldest
  }
}

/** Cell of an entry's key. */
function keyAt(entry: number): number {
  return HEADER_CELLS + (entry >>> BUCKET_BITS) * BUCKET_CELLS + (entry & (BUCKET - 1))
}

/** First cell of an entry's record. */
function recordAt(entry: number): number {
  const inBucket = RECORDS_AT + (entry & (BUCKET - 1)) * RECORD_CELLS
  return HEADER_CELLS + (entry >>> BUCKET_BITS) * BUCKET_CELLS + inBucket
}
