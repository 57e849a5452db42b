/** Requests of one thread that wait for a permit: first in, first out over all threads, each with a deadline. */
import { Interval } from '#kernel'
import { MAX_COUNT, type SharedPermits } from './shared-permits.ts'

/** Interval at which deadlines are checked while the queue is not empty, in milliseconds. */
const CHECK_INTERVAL_MS = 100

export interface ConcurrencyLimits {
  /** Permits over all threads; 0 or less: no limit. */
  readonly maxConcurrentRequests: number
  readonly queueSize: number
  readonly queueTimeoutMs: number
}

/** How a wait ended: with a permit, at its deadline, or because the request ended. */
export type WaitOutcome = 'entered' | 'timed_out' | 'left'

/** A request that waits for admission. */
export interface QueueEntry {
  /** Never rejects. */
  readonly outcome: Promise<WaitOutcome>
  /** Removes the request from the queue; does nothing once the wait has ended. */
  leave(): void
}

interface WaitingRequest extends QueueEntry {
  readonly ticket: number
  readonly deadlineMs: number
  end(outcome: WaitOutcome): void
}

export class PermitQueue {
  readonly #permits: SharedPermits
  readonly #nowMs: () => number
  /** In order of arrival. */
  readonly #waiters = new Set<WaitingRequest>()
  #limits: ConcurrencyLimits
  readonly #interval = new Interval(CHECK_INTERVAL_MS, () => this.#tick())
  #isArmed = false

  constructor(permits: SharedPermits, limits: ConcurrencyLimits, nowMs: () => number) {
    this.#permits = permits
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /** @returns true if a permit was free, false if the queue is full, else the queue entry */
  enter(): boolean | QueueEntry {
    const { queueSize, queueTimeoutMs } = this.#limits
    const result = this.#permits.enter(this.#limit, queueSize)
    if (result !== 'queued') return result === 'entered'
    const ticket = this.#permits.takeTicket()
    const { promise: outcome, resolve: end } = Promise.withResolvers<WaitOutcome>()
    const deadlineMs = this.#nowMs() + queueTimeoutMs
    const waiter: WaitingRequest = { ticket, deadlineMs, outcome, end, leave: () => this.#leave(waiter) }
    this.#waiters.add(waiter)
    if (this.#waiters.size === 1) {
      this.#permits.publishHead(ticket)
      this.#watch()
    }
    this.#grant()
    return waiter
  }

  release(): void {
    if (this.#permits.release()) this.#grant()
  }

  /** Requests in the queue keep their deadline. */
  setLimits(limits: ConcurrencyLimits): void {
    this.#limits = limits
    this.#grant()
  }

  /** Ends every wait with `left`. */
  close(): void {
    for (const waiter of this.#waiters) waiter.leave()
  }

  get #limit(): number {
    const { maxConcurrentRequests } = this.#limits
    return maxConcurrentRequests > 0 ? maxConcurrentRequests : MAX_COUNT
  }

  /** Hands free permits to the requests that are next here, then wakes the thread whose request is next. */
  #grant(): void {
    do {
      for (const waiter of this.#waiters) {
        if (!this.#permits.takeNext(this.#limit)) break
        this.#remove(waiter)
        waiter.end('entered')
      }
    } while (this.#permits.passOn(this.#limit))
  }

  #leave(waiter: WaitingRequest, outcome: WaitOutcome = 'left'): void {
    if (!this.#waiters.has(waiter)) return
    this.#permits.leave()
    this.#remove(waiter)
    waiter.end(outcome)
    this.#grant()
  }

  #remove(waiter: WaitingRequest): void {
    this.#waiters.delete(waiter)
    const { value } = this.#waiters.values().next()
    this.#permits.publishHead(value?.ticket ?? 0)
    if (this.#waiters.size === 0) this.#interval.stop()
  }

  #watch(): void {
    this.#interval.start()
    this.#listen()
  }

  #tick(): void {
    const nowMs = this.#nowMs()
    for (const waiter of this.#waiters) if (waiter.deadlineMs <= nowMs) this.#leave(waiter, 'timed_out')
    this.#grant()
  }

  /** Waits for a notification of another thread in shared memory. */
  #listen(): void {
    if (this.#isArmed) return
    this.#isArmed = true
    void this.#permits.nextWake().then(() => {
      this.#isArmed = false
      if (this.#waiters.size > 0) this.#listen()
      this.#grant()
    })
  }
}
