/**
 * What calls on the serving thread counted, until it is known whether they stand: a call that is made again in the pool
 * would count twice. @hot
 */
import type { SharedState } from './shared-state.ts'

export class PendingCounts {
  readonly #state: SharedState
  /** Keys and what was added to them, by turns. */
  readonly #made: (Uint8Array | bigint)[] = []

  constructor(state: SharedState) {
    this.#state = state
  }

  /** A call has counted. */
  add(key: Uint8Array, delta: bigint): void {
    this.#made.push(key, delta)
  }

  /** What was counted so far stands. */
  commit(): void {
    if (this.#made.length > 0) this.#made.length = 0
  }

  /** Takes back what was counted since `commit`. Others may have seen it. */
  rollback(): void {
    for (let at = 0; at < this.#made.length; at += 2)
      this.#state.addToExisting(this.#made[at] as Uint8Array, -(this.#made[at + 1] as bigint))
    this.commit()
  }
}
