/** Allocates the rows of workers in the shared counters. On control only. */
import { balanceErrors } from './balance-errors.ts'
import type { Counters } from './counters.ts'

/** Lowest row first, and never one that still counts requests of its previous worker. */
export class SlotAllocator {
  readonly #counters: Counters
  readonly #taken: Uint8Array

  constructor(counters: Counters) {
    this.#counters = counters
    this.#taken = new Uint8Array(counters.maxWorkers)
  }

  /**
   * @returns the lowest free row without requests on any thread; its status is `pending`
   * @throws worker_limit (503) if there is none
   */
  allocate(): number {
    this.#counters.requireControl()
    for (let slot = 0; slot < this.#taken.length; slot++) {
      if (this.#taken[slot] === 1 || !this.#counters.isIdle(slot)) continue
      this.#taken[slot] = 1
      return slot
    }
    throw balanceErrors.worker_limit(this.#taken.length)
  }

  /**
   * Frees the row. Call it when all threads have acknowledged the table without the worker: until then a thread could pick
   * the old worker in the row of a new one.
   */
  free(slot: number): void {
    this.#counters.setStatus(slot, 'pending')
    this.#taken[slot] = 0
  }
}
