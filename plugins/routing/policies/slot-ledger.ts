/**
 * What policies count about workers, in memory that all threads share: a row per worker slot. It also gives each worker
 * a tag, so that what was noted about a worker is never taken for news of the one that has its slot later.
 * @hot
 */
import type { PolicyParts, WorkerEntry } from '#kernel'
import { hashLow, hashText } from './hash64.ts'

/** Columns of a row. */
const TAG = 0
const PROCESSED = 1
const CREDIT = 2
const REPORT_STAMP = 3
const SESSIONS = 4
const CACHED = 5
const ROW_CELLS = 8

/** Rows of `maxWorkers` slots. One per thread; the memory is shared. */
export class SlotLedger {
  private readonly cells: Int32Array
  /** The entry last seen in a slot, by which a new tenant is noticed without hashing its id each time. */
  private readonly seen: (WorkerEntry | undefined)[]
  private readonly tags: Int32Array

  constructor(shared: PolicyParts['shared'], maxWorkers: number) {
    const bytes = maxWorkers * ROW_CELLS * Int32Array.BYTES_PER_ELEMENT
    this.cells = new Int32Array(shared('slots', bytes))
    this.seen = new Array<WorkerEntry | undefined>(maxWorkers).fill(undefined)
    this.tags = new Int32Array(maxWorkers)
  }

  /** 16 bits that a worker keeps for life and that its slot's next tenant very likely does not have; never 0. */
  tagOf(worker: WorkerEntry): number {
    return this.seen[worker.slot] === worker ? this.tags[worker.slot] : this.meet(worker)
  }

  /** Slot and tag in one word that is never 0: how the shared tables name a worker. */
  nameOf(worker: WorkerEntry): number {
    return (worker.slot << 16) | this.tagOf(worker)
  }

  /** True when the worker of this name has its slot now, as far as any thread knows. */
  isCurrent(name: number): boolean {
    return this.cells[(name >>> 16) * ROW_CELLS + TAG] === (name & 0xffff)
  }

  /** Requests that a policy sent to the worker; wraps. */
  processed(slot: number): number {
    return this.cells[slot * ROW_CELLS + PROCESSED] >>> 0
  }

  addProcessed(slot: number): void {
    Atomics.add(this.cells, slot * ROW_CELLS + PROCESSED, 1)
  }

  /**
   * Tokens sent to the worker since a report of it. Threads learn of a report one after the other: the newest that any
   * of them knows counts, and one that is behind goes on adding to it.
   *
   * @param atMs of the report that this thread knows
   */
  credit(slot: number, atMs: number): number {
    const at = slot * ROW_CELLS
    const stamp = atMs | 0
    const known = this.cells[at + REPORT_STAMP]
    if (known !== stamp && (known === 0 || ((stamp - known) | 0) > 0)) {
      if (Atomics.compareExchange(this.cells, at + REPORT_STAMP, known, stamp) === known) {
        Atomics.store(this.cells, at + CREDIT, 0)
      }
    }
    return this.cells[at + CREDIT]
  }

  addCredit(slot: number, tokens: number): void {
    const cell = slot * ROW_CELLS + CREDIT
    // Without reports it would grow for ever.
    if (this.cells[cell] < 0x3fff_ffff) Atomics.add(this.cells, cell, tokens)
  }

  /** Sessions that stick to the worker. */
  sessions(slot: number): number {
    return this.cells[slot * ROW_CELLS + SESSIONS]
  }

  /** @param name of the worker; one that has left its slot is not counted any more */
  addSession(name: number, by: 1 | -1): void {
    if (this.isCurrent(name)) Atomics.add(this.cells, (name >>> 16) * ROW_CELLS + SESSIONS, by)
  }

  /** Prompt bytes remembered for the worker. */
  cachedBytes(slot: number): number {
    return this.cells[slot * ROW_CELLS + CACHED]
  }

  addCached(name: number, bytes: number): void {
    if (this.isCurrent(name)) Atomics.add(this.cells, (name >>> 16) * ROW_CELLS + CACHED, bytes)
  }

  /** After a count of the whole table, which is exact but for what changed meanwhile. */
  setCached(slot: number, bytes: number): void {
    Atomics.store(this.cells, slot * ROW_CELLS + CACHED, bytes)
  }

  /** Another entry has the slot: a changed worker keeps its row, a new one gets a clean one. */
  private meet(worker: WorkerEntry): number {
    hashText(worker.id)
    const tag = hashLow & 0xffff || 1
    const at = worker.slot * ROW_CELLS
    this.seen[worker.slot] = worker
    this.tags[worker.slot] = tag
    const known = Atomics.load(this.cells, at + TAG)
    if (known !== tag && Atomics.compareExchange(this.cells, at + TAG, known, tag) === known) {
      for (let column = PROCESSED; column < ROW_CELLS; column++) Atomics.store(this.cells, at + column, 0)
    }
    return tag
  }
}
