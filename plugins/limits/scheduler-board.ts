/** What runs and waits at the schedulers of all threads, in shared memory, for those who look. */

import type { Scheduler } from './scheduler.ts'
import { PRIORITIES } from './scheduler-config.ts'

/** Running and waiting of each class, then the slots. */
const COLUMN_CELLS = PRIORITIES.length * 2 + 1

export interface SchedulerUse {
  readonly capacity: number
  /** By class, the most urgent first. */
  readonly classes: readonly { readonly running: number; readonly waiting: number }[]
}

export class SchedulerBoard {
  readonly #cells: Int32Array
  readonly #start: number

  static bytes(columns: number): number {
    return columns * COLUMN_CELLS * Int32Array.BYTES_PER_ELEMENT
  }

  constructor(memory: SharedArrayBuffer, column: number) {
    this.#cells = new Int32Array(memory)
    this.#start = column * COLUMN_CELLS
  }

  /** Shows this thread's numbers. */
  show(scheduler: Scheduler): void {
    for (let priority = 0; priority < PRIORITIES.length; priority++) {
      Atomics.store(this.#cells, this.#start + priority * 2, scheduler.usedBy(priority))
      Atomics.store(this.#cells, this.#start + priority * 2 + 1, scheduler.waiting(priority))
    }
    Atomics.store(this.#cells, this.#start + COLUMN_CELLS - 1, scheduler.capacity)
  }

  /** Forgets what a thread of this column showed before it died. */
  reset(): void {
    this.#cells.fill(0, this.#start, this.#start + COLUMN_CELLS)
  }

  /** Over all threads. */
  get total(): SchedulerUse {
    return {
      capacity: this.#sum(COLUMN_CELLS - 1),
      classes: PRIORITIES.map((_, priority) => ({
        running: this.#sum(priority * 2),
        waiting: this.#sum(priority * 2 + 1),
      })),
    }
  }

  #sum(cell: number): number {
    let sum = 0
    for (let at = cell; at < this.#cells.length; at += COLUMN_CELLS) sum += Atomics.load(this.#cells, at)
    return sum
  }
}
