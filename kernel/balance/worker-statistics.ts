/**
 * What operators see of each worker, over all threads, in shared memory: attempts, failures, times and the last error. Also read by
 * `latency-weights.ts`.
 * @hot
 */
import {
  type CounterLayout,
  ERROR_HEADER_CELLS,
  ERROR_ROW_CELLS,
  ERROR_TEXT_BYTES,
  SharedColumn,
} from './counter-layout.ts'
import type { Counters } from './counters.ts'
import type { Fault, WorkerFigures } from './worker-balance.ts'

/** An attempt weighs 1/16 in the averages. */
const WEIGHT = 1 / 16
/** Longest time that fits, milliseconds. */
const MAX_MS = 0x7fff_ffff
/** Times are kept in sixteenths of a millisecond, as the averages would stop short of their goal otherwise. */
export const TIME_SCALE = 16

const COLUMN_OF_FAULT = {
  answered: SharedColumn.answered,
  silent: SharedColumn.silent,
  unreachable: SharedColumn.unreachable,
} as const satisfies Record<Fault, number>

export class WorkerStatistics {
  readonly #cells: Int32Array
  readonly #columns: readonly number[]

  constructor({ layout }: Counters) {
    this.#cells = layout.cells
    this.#columns = Object.values(SharedColumn).map((column) => layout.shared(column))
  }

  /** @param firstByteMs time to the first byte of the body, milliseconds; -1 without one */
  succeeded(slot: number, durationMs: number, firstByteMs: number): void {
    Atomics.add(this.#cells, this.#columns[SharedColumn.attempts] + slot, 1)
    const refusalsAt = this.#columns[SharedColumn.refusals] + slot
    // The common case only reads.
    if (this.#cells[refusalsAt] !== 0) Atomics.store(this.#cells, refusalsAt, 0)
    this.#average(this.#columns[SharedColumn.durationMs] + slot, durationMs)
    if (firstByteMs >= 0) this.#average(this.#columns[SharedColumn.firstByteMs] + slot, firstByteMs)
  }

  /** The worker rejected the request. Its time is no measure of how fast it serves. */
  refused(slot: number): void {
    Atomics.add(this.#cells, this.#columns[SharedColumn.attempts] + slot, 1)
    Atomics.add(this.#cells, this.#columns[SharedColumn.refusals] + slot, 1)
  }

  refusals(slot: number): number {
    return this.#cells[this.#columns[SharedColumn.refusals] + slot]
  }

  /** An answer of the worker named another model than it was asked for. */
  misnamed(slot: number): void {
    Atomics.add(this.#cells, this.#columns[SharedColumn.misnamed] + slot, 1)
  }

  misnamedAnswers(slot: number): number {
    return this.#cells[this.#columns[SharedColumn.misnamed] + slot]
  }

  failed(slot: number, fault: Fault): void {
    Atomics.add(this.#cells, this.#columns[SharedColumn.attempts] + slot, 1)
    Atomics.add(this.#cells, this.#columns[COLUMN_OF_FAULT[fault]] + slot, 1)
  }

  figures(slot: number): Pick<WorkerFigures, 'attempts' | 'failures' | 'durationMs' | 'firstByteMs'> {
    const cell = (column: number) => this.#cells[this.#columns[column] + slot]
    const count = (column: number) => cell(column) >>> 0
    const average = (column: number) => (cell(column) === 0 ? null : cell(column) / TIME_SCALE)
    return {
      attempts: count(SharedColumn.attempts),
      failures: {
        answered: count(SharedColumn.answered),
        silent: count(SharedColumn.silent),
        unreachable: count(SharedColumn.unreachable),
      },
      durationMs: average(SharedColumn.durationMs),
      firstByteMs: average(SharedColumn.firstByteMs),
    }
  }

  /** Control only: forgets the previous worker of the row. */
  reset(slot: number): void {
    const { attempts, answered, silent, unreachable, durationMs, firstByteMs, refusals, misnamed } =
      SharedColumn
    for (const column of [
      attempts,
      answered,
      silent,
      unreachable,
      durationMs,
      firstByteMs,
      refusals,
      misnamed,
    ])
      Atomics.store(this.#cells, this.#columns[column] + slot, 0)
  }

  /** Threads may overwrite each other's update: one value in an average. */
  #average(at: number, ms: number): void {
    const before = this.#cells[at]
    const value = Math.min(ms * TIME_SCALE, MAX_MS)
    this.#cells[at] = Math.max(1, before === 0 ? value : before + (value - before) * WEIGHT)
  }
}

const VERSION = 0
const AT_SEC = 1
const BYTES = 2
const CELL_BYTES = Int32Array.BYTES_PER_ELEMENT
/** Reads until a writer that died in between is given up. */
const MAX_READS = 100

/**
 * The last error of each worker.
 *
 * A row is a version, a time, a length and the text. The version is odd while a thread writes: another writer then drops its
 * text, and a reader tries again.
 */
export class LastErrors {
  readonly #cells: Int32Array
  readonly #bytes: Buffer
  readonly #startAt: number

  constructor({ cells, errorsAt }: CounterLayout) {
    this.#cells = cells
    this.#bytes = Buffer.from(cells.buffer)
    this.#startAt = errorsAt
  }

  /** @param text the first 256 bytes are kept */
  note(slot: number, text: string, nowMs: number): void {
    const at = this.#startAt + slot * ERROR_ROW_CELLS
    const version = Atomics.load(this.#cells, at + VERSION)
    if (version % 2 !== 0) return
    if (Atomics.compareExchange(this.#cells, at + VERSION, version, version + 1) !== version) return
    this.#cells[at + AT_SEC] = Math.floor(nowMs / 1000)
    this.#cells[at + BYTES] = this.#bytes.write(
      text,
      (at + ERROR_HEADER_CELLS) * CELL_BYTES,
      ERROR_TEXT_BYTES,
    )
    Atomics.store(this.#cells, at + VERSION, (version + 2) | 0)
  }

  of(slot: number): { text: string; atMs: number } | null {
    const at = this.#startAt + slot * ERROR_ROW_CELLS
    for (let reads = 0; reads < MAX_READS; reads++) {
      const version = Atomics.load(this.#cells, at + VERSION)
      if (version % 2 !== 0) continue
      const atMs = (this.#cells[at + AT_SEC] >>> 0) * 1000
      const textAt = (at + ERROR_HEADER_CELLS) * CELL_BYTES
      const text = this.#bytes.toString('utf8', textAt, textAt + this.#cells[at + BYTES])
      if (Atomics.load(this.#cells, at + VERSION) !== version) continue
      return atMs === 0 ? null : { text, atMs }
    }
    return null
  }

  /** Control only: forgets the previous worker of the row, and a writer that died. */
  reset(slot: number): void {
    const at = this.#startAt + slot * ERROR_ROW_CELLS
    this.#cells[at + AT_SEC] = 0
    Atomics.store(this.#cells, at + VERSION, 0)
  }
}
