/**
 * The cells of a circuit breaker in shared memory: state, run and epoch, and the permits of its probes.
 * @hot
 */
import { SharedColumn, ThreadColumn } from './counter-layout.ts'
import type { Counters } from './counters.ts'

/** A cell has 2 bits state, 16 bits run and 14 bits epoch, which change together by compare-and-swap. */
export const CLOSED = 0
export const OPEN = 1
export const HALF_OPEN = 2

/** Largest run that is counted. */
export const MAX_RUN = 0xffff

const STATE_MASK = 0b11
const RUN_SHIFT = 2
const EPOCH_SHIFT = 18
const EPOCH_MASK = 0x3fff

/** @param epoch wraps around */
export function toCell(state: number, run: number, epoch: number): number {
  return ((epoch & EPOCH_MASK) << EPOCH_SHIFT) | (run << RUN_SHIFT) | state
}

export function withRun(cell: number, run: number): number {
  return (cell & ~(MAX_RUN << RUN_SHIFT)) | (run << RUN_SHIFT)
}

export function stateOf(cell: number): number {
  return cell & STATE_MASK
}

/** Consecutive failures of a closed breaker, failures that opened an open one, or consecutive successes of a half-open one. */
export function runOf(cell: number): number {
  return (cell >>> RUN_SHIFT) & MAX_RUN
}

/** Incremented by each change of state. */
export function epochOf(cell: number): number {
  return cell >>> EPOCH_SHIFT
}

/** A probe that runs longer does not block the next one: it may be a long stream or lost. Milliseconds. */
const PROBE_LIMIT_MS = 60_000

/**
 * Limits the concurrent probes of half-open breakers, over all threads. A thread counts its probes in its own column too, so
 * that they are released when it dies.
 */
export class ProbePermits {
  readonly #limit: number
  readonly #cells: Int32Array
  readonly #totalAt: number
  readonly #ownAt: number
  /** Start of the last probe: milliseconds, low 32 bits. */
  readonly #beganAt: number

  /** @param limit concurrent probes per worker */
  constructor({ layout, threadIndex }: Counters, limit: number) {
    this.#limit = limit
    this.#cells = layout.cells
    this.#totalAt = layout.shared(SharedColumn.probesTotal)
    this.#ownAt = layout.ofThread(threadIndex, ThreadColumn.probes)
    this.#beganAt = layout.shared(SharedColumn.probedAt)
  }

  isAvailable(slot: number, nowMs: number): boolean {
    if (this.#cells[this.#totalAt + slot] < this.#limit) return true
    return hasPassed(this.#cells[this.#beganAt + slot], PROBE_LIMIT_MS, nowMs)
  }

  /**
   * @param limit default: the limit of the constructor
   * @returns false if all permits are taken
   */
  acquire(slot: number, nowMs: number, limit = this.#limit): boolean {
    const cells = this.#cells
    const totalAt = this.#totalAt
    const beganAt = this.#beganAt
    for (;;) {
      const running = Atomics.load(cells, totalAt + slot)
      if (running < limit) {
        // The time is stored first, so that another thread does not take this probe for an expired one.
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

  release(slot: number): void {
    if (this.#cells[this.#ownAt + slot] <= 0) return
    Atomics.sub(this.#cells, this.#ownAt + slot, 1)
    Atomics.sub(this.#cells, this.#totalAt + slot, 1)
  }

  /** Control only, for an unused row: clears what a thread left that died between two updates. */
  reset(slot: number): void {
    Atomics.store(this.#cells, this.#totalAt + slot, 0)
  }
}

/** Compares the low 32 bits of two times. True as well if the clock was set back by more than `ms`. */
export function hasPassed(at: number, ms: number, nowMs: number): boolean {
  const elapsedMs = (nowMs - at) | 0
  return elapsedMs >= ms || elapsedMs < -ms
}
