/**
 * Counters of the policies by worker slot, in memory that all threads share. Each worker has a tag, so that data of a
 * removed worker is not attributed to the next worker in its slot.
 * @hot
 */
import type { PolicyParts, WorkerEntry } from '#kernel'
import { hashHigh, hashLow, hashText } from './hash64.ts'

/** Columns of a row. */
const TAG = 0
const PROCESSED = 1
const CREDIT = 2
const REPORT_STAMP = 3
const SESSIONS = 4
const CACHED = 5
const ROW_CELLS = 8

export class WorkerCounters {
  private readonly cells: Int32Array
  /** The entry last seen in each slot, so that the id is hashed only when the entry changes. */
  private readonly seen: (WorkerEntry | undefined)[]
  private readonly tags: Int32Array
  private readonly urlHashes: Int32Array

  constructor(shared: PolicyParts['shared'], maxWorkers: number) {
    const bytes = maxWorkers * ROW_CELLS * Int32Array.BYTES_PER_ELEMENT
    this.cells = new Int32Array(shared('slots', bytes))
    this.seen = new Array<WorkerEntry | undefined>(maxWorkers).fill(undefined)
    this.tags = new Int32Array(maxWorkers)
    this.urlHashes = new Int32Array(maxWorkers)
  }

  /** 16-bit hash of the worker id; never 0. */
  tagOf(worker: WorkerEntry): number {
    return this.seen[worker.slot] === worker ? this.tags[worker.slot] : this.register(worker)
  }

  /** 32-bit hash of the worker's URL: the same on every gateway. */
  urlHash(worker: WorkerEntry): number {
    if (this.seen[worker.slot] !== worker) this.register(worker)
    return this.urlHashes[worker.slot]
  }

  /** Slot and tag in one 32-bit word, never 0: identifies a worker in the shared tables. */
  nameOf(worker: WorkerEntry): number {
    return (worker.slot << 16) | this.tagOf(worker)
  }

  /** Whether the worker of this name still has its slot. */
  isCurrent(name: number): boolean {
    return this.cells[(name >>> 16) * ROW_CELLS + TAG] === (name & 0xffff)
  }

  /** Requests sent to the worker; wraps around. */
  processed(slot: number): number {
    return this.cells[slot * ROW_CELLS + PROCESSED] >>> 0
  }

  addProcessed(slot: number): void {
    Atomics.add(this.cells, slot * ROW_CELLS + PROCESSED, 1)
  }

  /**
   * Tokens sent to the worker since its last load report. Threads receive reports at different times; the newest report
   * that any thread has received resets the count.
   *
   * @param atMs time of the last report on this thread
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
    // Bounded, because the count is never reset without reports.
    if (this.cells[cell] < 0x3fff_ffff) Atomics.add(this.cells, cell, tokens)
  }

  /** Sticky sessions of the worker. */
  sessions(slot: number): number {
    return this.cells[slot * ROW_CELLS + SESSIONS]
  }

  /** @param name of the worker; ignored if it no longer has its slot */
  addSession(name: number, by: 1 | -1): void {
    if (this.isCurrent(name)) Atomics.add(this.cells, (name >>> 16) * ROW_CELLS + SESSIONS, by)
  }

  /** Prompt bytes of the worker in the prefix table. */
  cachedBytes(slot: number): number {
    return this.cells[slot * ROW_CELLS + CACHED]
  }

  addCached(name: number, bytes: number): void {
    if (this.isCurrent(name)) Atomics.add(this.cells, (name >>> 16) * ROW_CELLS + CACHED, bytes)
  }

  /** Corrects the count after a sweep over the table. */
  setCached(slot: number, bytes: number): void {
    Atomics.store(this.cells, slot * ROW_CELLS + CACHED, bytes)
  }

  /** A changed entry of the same worker keeps its row; a new worker gets a cleared row. */
  private register(worker: WorkerEntry): number {
    hashText(worker.id)
    const tag = hashLow & 0xffff || 1
    hashText(worker.url)
    this.urlHashes[worker.slot] = hashHigh
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
