/**
 * Attempts, failures and times of each worker, over all threads, in shared memory: for operators, and for `latency-weights.ts`.
 * @hot
 */
import { SharedColumn } from './counter-layout.ts'
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
    this.#average(this.#columns[SharedColumn.durationMs] + slot, durationMs)
    if (firstByteMs >= 0) this.#average(this.#columns[SharedColumn.firstByteMs] + slot, firstByteMs)
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
    const { attempts, answered, silent, unreachable, durationMs, firstByteMs } = SharedColumn
    for (const column of [attempts, answered, silent, unreachable, durationMs, firstByteMs])
      Atomics.store(this.#cells, this.#columns[column] + slot, 0)
  }

  /** Threads may overwrite each other's update: one value in an average. */
  #average(at: number, ms: number): void {
    const before = this.#cells[at]
    const value = Math.min(ms * TIME_SCALE, MAX_MS)
    this.#cells[at] = Math.max(1, before === 0 ? value : before + (value - before) * WEIGHT)
  }
}
