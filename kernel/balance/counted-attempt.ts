/**
 * One attempt from pick to release: counted as in flight, its outcome reported to the worker's breaker and statistics.
 * @hot
 */
import type { WorkerEntry } from '../contracts/worker.ts'
import { turnNowMs } from '../observe/timing.ts'
import type { Breakers } from './breakers.ts'
import type { Counters } from './counters.ts'
import type { Outliers } from './outliers.ts'
import type { Attempt, Choice, Fault } from './worker-balance.ts'
import type { WorkerStatistics } from './worker-statistics.ts'

/** Shared counts that an attempt updates. */
export interface AttemptCounters {
  readonly counters: Counters
  readonly breakers: Breakers
  readonly outliers: Outliers
  readonly statistics: WorkerStatistics
}

export class CountedAttempt implements Attempt {
  readonly worker: WorkerEntry
  readonly policy: string
  readonly choice: Choice | null
  readonly #counts: AttemptCounters
  readonly #permit: number
  readonly #startedAtMs = turnNowMs()
  #firstByteMs = -1
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
    counts.outliers.tried(worker.slot)
  }

  firstByte(): void {
    if (this.#firstByteMs < 0) this.#firstByteMs = turnNowMs() - this.#startedAtMs
  }

  succeeded(): void {
    if (this.#hasEnded) return
    this.#counts.statistics.succeeded(this.worker.slot, turnNowMs() - this.#startedAtMs, this.#firstByteMs)
    this.#answered()
  }

  refused(): void {
    if (this.#hasEnded) return
    this.#counts.statistics.refused(this.worker.slot)
    this.#answered()
  }

  #answered(): void {
    this.#counts.breakers.succeeded(this.worker, this.#permit)
    this.#counts.outliers.succeeded(this.worker.slot)
    this.#end()
  }

  failed(fault: Fault = 'silent'): void {
    if (this.#hasEnded) return
    const { breakers, outliers, statistics } = this.#counts
    const { slot } = this.worker
    breakers.failed(this.worker, this.#permit, fault)
    outliers.failed(slot)
    statistics.failed(slot, fault)
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
