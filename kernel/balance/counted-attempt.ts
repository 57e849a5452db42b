/**
 * One attempt from pick to release: counted as in flight, and reported to the worker's breaker.
 * @hot
 */
import type { WorkerEntry } from '../contracts/worker.ts'
import type { Breakers } from './breakers.ts'
import type { Counters } from './counters.ts'
import type { Attempt, Choice, Fault } from './worker-balance.ts'

/** Shared counts that an attempt updates. */
export interface AttemptCounters {
  readonly counters: Counters
  readonly breakers: Breakers
}

export class CountedAttempt implements Attempt {
  readonly worker: WorkerEntry
  readonly policy: string
  readonly choice: Choice | null
  readonly #counts: AttemptCounters
  readonly #permit: number
  /** The breaker has the outcome, or gets none. */
  #hasEnded = false
  #isReleased = false

  /** @param permit of the breaker */
  constructor(
    counts: AttemptCounters,
    worker: WorkerEntry,
    chosenBy: { policy: string; choice: Choice | null },
    permit: number,
  ) {
    this.#counts = counts
    this.worker = worker
    this.policy = chosenBy.policy
    this.choice = chosenBy.choice
    this.#permit = permit
    counts.counters.increment(worker.slot)
  }

  succeeded(): void {
    if (this.#hasEnded) return
    this.#counts.breakers.succeeded(this.worker, this.#permit)
    this.#end()
  }

  failed(fault: Fault = 'silent'): void {
    if (this.#hasEnded) return
    this.#counts.breakers.failed(this.worker, this.#permit, fault)
    this.#end()
  }

  release(): void {
    if (this.#isReleased) return
    if (!this.#hasEnded) this.#end()
    this.#isReleased = true
    this.#counts.counters.decrement(this.worker.slot)
  }

  /** Called after the outcome was reported, so that the next probe sees it. */
  #end(): void {
    this.#hasEnded = true
    this.#counts.breakers.release(this.worker, this.#permit)
  }
}
