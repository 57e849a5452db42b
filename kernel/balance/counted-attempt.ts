/**
 * One attempt from its choice to its end: in the in-flight count, and known to the worker's breaker.
 * @hot
 */
import type { WorkerEntry } from '../contracts/worker.ts'
import type { Breakers } from './breakers.ts'
import type { Counters } from './counters.ts'
import type { Attempt, Choice, Fault } from './worker-balance.ts'

/** What an attempt is counted in. */
export interface AttemptBooks {
  readonly counters: Counters
  readonly breakers: Breakers
}

export class CountedAttempt implements Attempt {
  readonly worker: WorkerEntry
  readonly policy: string
  readonly choice: Choice | null
  readonly #books: AttemptBooks
  readonly #passage: number
  /** For the breaker: the outcome was told, or no longer can be. */
  #hasEnded = false
  #isReleased = false

  /** @param passage what the breaker gave */
  constructor(
    books: AttemptBooks,
    worker: WorkerEntry,
    chosenBy: { policy: string; choice: Choice | null },
    passage: number,
  ) {
    this.#books = books
    this.worker = worker
    this.policy = chosenBy.policy
    this.choice = chosenBy.choice
    this.#passage = passage
    books.counters.increment(worker.slot)
  }

  succeeded(): void {
    if (this.#hasEnded) return
    this.#books.breakers.succeeded(this.worker, this.#passage)
    this.#end()
  }

  failed(fault: Fault = 'silent'): void {
    if (this.#hasEnded) return
    this.#books.breakers.failed(this.worker, this.#passage, fault)
    this.#end()
  }

  release(): void {
    if (this.#isReleased) return
    if (!this.#hasEnded) this.#end()
    this.#isReleased = true
    this.#books.counters.decrement(this.worker.slot)
  }

  /** After the outcome, so that the next probe meets what this one found. */
  #end(): void {
    this.#hasEnded = true
    this.#books.breakers.leave(this.worker, this.#passage)
  }
}
