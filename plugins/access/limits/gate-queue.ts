/** The requests of one thread that wait at the shared gate: first in, first out over all threads, each with a deadline. */
import { MAX_COUNT, type SharedGate } from './shared-gate.ts'
import type { Waiting, WaitOutcome } from './waiting.ts'

/** While anyone waits here, the queue is looked at this often even if nobody calls. Milliseconds. */
const LOOK_MS = 100

export interface GateLimits {
  /** Permits over all threads; 0 or less: no limit. */
  readonly maxConcurrentRequests: number
  readonly queueSize: number
  readonly queueTimeoutMs: number
}

class GateWaiter implements Waiting {
  readonly ticket: number
  readonly deadlineMs: number
  readonly outcome: Promise<WaitOutcome>
  readonly end: (outcome: WaitOutcome) => void
  readonly leave: () => void

  constructor(ticket: number, deadlineMs: number, onLeave: (waiter: GateWaiter) => void) {
    const { promise, resolve } = Promise.withResolvers<WaitOutcome>()
    this.ticket = ticket
    this.deadlineMs = deadlineMs
    this.outcome = promise
    this.end = resolve
    this.leave = () => onLeave(this)
  }
}

export class GateQueue {
  readonly #gate: SharedGate
  readonly #nowMs: () => number
  /** In order of arrival. */
  readonly #waiters = new Set<GateWaiter>()
  #limits: GateLimits
  #timer: NodeJS.Timeout | null = null
  #isArmed = false

  constructor(gate: SharedGate, limits: GateLimits, nowMs: () => number) {
    this.#gate = gate
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /** Requests that wait on this thread. */
  get length(): number {
    return this.#waiters.size
  }

  /** @returns true with a permit at once, false when the queue is full */
  enter(): boolean | Waiting {
    const { queueSize, queueTimeoutMs } = this.#limits
    const answer = this.#gate.enter(this.#permits, queueSize)
    if (answer !== 'queued') return answer === 'entered'
    const ticket = this.#gate.takeTicket()
    const waiter = new GateWaiter(ticket, this.#nowMs() + queueTimeoutMs, (one) => this.#leave(one))
    this.#waiters.add(waiter)
    if (this.#waiters.size === 1) {
      this.#gate.showHead(ticket)
      this.#watch()
    }
    this.#look()
    return waiter
  }

  /** Gives a permit back. */
  release(): void {
    if (this.#gate.release()) this.#look()
  }

  /** Those who wait keep the deadline they began with. */
  setLimits(limits: GateLimits): void {
    this.#limits = limits
    this.#look()
  }

  /** Forgets everybody who waits; for the end of the thread. */
  close(): void {
    for (const waiter of this.#waiters) waiter.leave()
  }

  get #permits(): number {
    const { maxConcurrentRequests } = this.#limits
    return maxConcurrentRequests > 0 ? maxConcurrentRequests : MAX_COUNT
  }

  /** Lets in whoever's turn it is here, and wakes the thread whose turn is next. */
  #look(): void {
    do {
      for (const waiter of this.#waiters) {
        if (!this.#gate.takeNext(this.#permits)) break
        this.#remove(waiter)
        waiter.end('entered')
      }
    } while (this.#gate.passOn(this.#permits))
  }

  #leave(waiter: GateWaiter, outcome: WaitOutcome = 'left'): void {
    if (!this.#waiters.has(waiter)) return
    this.#gate.leave()
    this.#remove(waiter)
    waiter.end(outcome)
    this.#look()
  }

  #remove(waiter: GateWaiter): void {
    this.#waiters.delete(waiter)
    const { value } = this.#waiters.values().next()
    this.#gate.showHead(value?.ticket ?? 0)
    if (this.#waiters.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }

  #watch(): void {
    this.#timer ??= setInterval(() => this.#tick(), LOOK_MS).unref()
    this.#listen()
  }

  #tick(): void {
    const nowMs = this.#nowMs()
    for (const waiter of this.#waiters) if (waiter.deadlineMs <= nowMs) this.#leave(waiter, 'timed_out')
    this.#look()
  }

  /** Other threads wake this one by its word in shared memory. */
  #listen(): void {
    if (this.#isArmed) return
    let wake = this.#gate.nextWake()
    while (wake === null) wake = this.#gate.nextWake()
    this.#isArmed = true
    void wake.then(() => {
      this.#isArmed = false
      if (this.#waiters.size > 0) this.#listen()
      this.#look()
    })
  }
}
