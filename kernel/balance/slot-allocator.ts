/** Which rows of the counters are taken. Lives on control; the counters themselves are in `counters.ts`. */
import { balanceErrors } from './balance-errors.ts'
import type { Counters } from './counters.ts'

/** Gives out rows, lowest first, and never one that still counts requests of the worker that had it before. */
export class SlotAllocator {
  readonly #counters: Counters
  readonly #taken: Uint8Array

  constructor(counters: Counters) {
    this.#counters = counters
    this.#taken = new Uint8Array(counters.maxWorkers)
  }

  /**
   * @returns the lowest free row whose count is zero on every thread; its status is `pending`
   * @throws worker_limit (503) when there is none
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
   * Gives the row back. Call it when the table without the worker has been acknowledged: until then a thread could
   * still pick the old worker through the row of a new one.
   */
  free(slot: number): void {
    this.#counters.setStatus(slot, 'pending')
    this.#taken[slot] = 0
  }
}
