/** Virtual time for simulated engines. */
import type { BatchClock } from '../../plugins/sim/batch.ts'

/** A clock for simulated engines that advances on demand and runs timers in the order of their times. */
export class VirtualClock implements BatchClock {
  now = 0
  #waits: { atMs: number; work: () => void }[] = []

  nowMs(): number {
    return this.now
  }

  after(delayMs: number, work: () => void): () => void {
    const wait = { atMs: this.now + delayMs, work }
    this.#waits.push(wait)
    return () => {
      this.#waits = this.#waits.filter((other) => other !== wait)
    }
  }

  get timers(): number {
    return this.#waits.length
  }

  /** Runs all timers up to that time; Infinity runs all of them. */
  passTo(atMs: number): void {
    for (;;) {
      const next = this.#waits.toSorted((left, right) => left.atMs - right.atMs)[0]
      if (next === undefined || next.atMs > atMs) break
      this.#waits = this.#waits.filter((other) => other !== next)
      this.now = Math.max(this.now, next.atMs)
      next.work()
    }
    this.now = Math.max(this.now, atMs)
  }
}
