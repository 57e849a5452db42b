/**
 * How many probes of half-open breakers run, over all threads, and room for no more than are allowed.
 * @hot
 */
import { SharedColumn, ThreadColumn } from './counter-layout.ts'
import type { Counters } from './counters.ts'

/** A probe that runs longer no longer keeps the next one out: it may be a long stream, or lost. milliseconds */
const PROBE_LIMIT_MS = 60_000

/** A thread counts its probes in a column of its own too, so that they are given back when it dies. */
export class ProbePlaces {
  readonly #limit: number
  readonly #cells: Int32Array
  readonly #totalAt: number
  readonly #ownAt: number
  /** When the last probe began: milliseconds, low 32 bits. */
  readonly #beganAt: number

  /** @param limit probes of one worker at a time */
  constructor({ layout, threadIndex }: Counters, limit: number) {
    this.#limit = limit
    this.#cells = layout.cells
    this.#totalAt = layout.shared(SharedColumn.probesTotal)
    this.#ownAt = layout.ofThread(threadIndex, ThreadColumn.probes)
    this.#beganAt = layout.shared(SharedColumn.probedAt)
  }

  isFree(slot: number, nowMs: number): boolean {
    if (this.#cells[this.#totalAt + slot] < this.#limit) return true
    return hasPassed(this.#cells[this.#beganAt + slot], PROBE_LIMIT_MS, nowMs)
  }

  /**
   * @param limit places; default as configured
   * @returns false when there is none
   */
  take(slot: number, nowMs: number, limit = this.#limit): boolean {
    const cells = this.#cells
    const totalAt = this.#totalAt
    const beganAt = this.#beganAt
    for (;;) {
      const running = Atomics.load(cells, totalAt + slot)
      if (running < limit) {
        // The time goes first: who finds no place must not take the last one for an old one.
        Atomics.store(cells, beganAt + slot, nowMs | 0)
        if (Atomics.compareExchange(cells, totalAt + slot, running, running + 1) !== running) continue
      } else {
        const at = Atomics.load(cells, beganAt + slot)
        if (!hasPassed(at, PROBE_LIMIT_MS, nowMs)) return false
        if (Atomics.compareExchange(cells, beganAt + slot, at, nowMs | 0) !== at) continue
        Atomics.add(cells, totalAt + slot, 1)
      }
      Atomics.add(cells, this.#ownAt + slot, 1)
      return true
    }
  }

  giveBack(slot: number): void {
    if (this.#cells[this.#ownAt + slot] <= 0) return
    Atomics.sub(this.#cells, this.#ownAt + slot, 1)
    Atomics.sub(this.#cells, this.#totalAt + slot, 1)
  }

  /** Control only, of a row that nobody uses: what a thread left that died between two steps. */
  reset(slot: number): void {
    Atomics.store(this.#cells, this.#totalAt + slot, 0)
  }
}

/** Compares the low 32 bits of two times. A clock that was set back by more than `ms` counts as passed. */
export function hasPassed(at: number, ms: number, nowMs: number): boolean {
  const elapsedMs = (nowMs - at) | 0
  return elapsedMs >= ms || elapsedMs < -ms
}
