/** The scheduler on one thread: requests that wait as promises, the clock, and the ear for other threads. */
import type { Scheduler } from './scheduler.ts'
import type { SharedSlots } from './shared-slots.ts'
import type { SchedulerRules } from './slot-rules.ts'
import { Turn } from './turn.ts'
import type { Waiting, WaitOutcome } from './waiting.ts'

/** While anyone waits, deadlines and starvation are looked at this often. Milliseconds. */
const LOOK_MS = 50

/** What the owner of a request answers and is told. */
export interface Preemptible {
  isPreemptible(): boolean
  /** @param by class that takes its place, 0-based */
  preempt(by: number): void
}

export class ScheduledRequest implements Waiting {
  readonly outcome: Promise<WaitOutcome>
  readonly turn: Turn
  readonly leave: () => void

  constructor(priority: number, owner: Preemptible, onLeave: (turn: Turn) => void) {
    const { promise, resolve } = Promise.withResolvers<WaitOutcome>()
    this.outcome = promise
    const turn = new Turn(priority, {
      isPreemptible: () => owner.isPreemptible(),
      onPreempted: (by) => owner.preempt(by),
      onAdmitted: () => resolve('entered'),
      onTimedOut: () => resolve('timed_out'),
    })
    this.turn = turn
    this.leave = () => {
      if (turn.state !== 'waiting') return
      onLeave(turn)
      resolve('left')
    }
  }
}

export class SchedulerQueue {
  readonly #scheduler: Scheduler
  readonly #slots: SharedSlots
  readonly #nowMs: () => number
  #timer: NodeJS.Timeout | null = null
  #isListening = false
  #isOpen = false

  /** @param nowMs a clock that all threads share, milliseconds */
  constructor(scheduler: Scheduler, slots: SharedSlots, nowMs: () => number) {
    this.#scheduler = scheduler
    this.#slots = slots
    this.#nowMs = nowMs
  }

  /** @returns the request, running or waiting; null when the queue of its class is full */
  enter(priority: number, owner: Preemptible): ScheduledRequest | null {
    const request = new ScheduledRequest(priority, owner, (turn) => this.end(turn))
    const answer = this.#scheduler.request(request.turn, this.#nowMs())
    if (answer === 'waiting') this.#timer ??= setInterval(() => this.#tick(), LOOK_MS).unref()
    return answer === 'full' ? null : request
  }

  /** Gives the slot or the place in the queue back; nothing when that has been done. */
  end(turn: Turn): void {
    this.#scheduler.end(turn, this.#nowMs())
    this.#rest()
  }

  /** From now on other threads may ask this one for room, and wake it for its turn. */
  open(rules: SchedulerRules): void {
    this.#isOpen = true
    this.#scheduler.setRules(rules, this.#nowMs())
    this.#listen()
    this.#rest()
  }

  /** Lets everybody in who waits. */
  close(): void {
    this.#isOpen = false
    this.#scheduler.admitAll()
    this.#rest()
  }

  #tick(): void {
    this.#scheduler.tick(this.#nowMs())
    this.#rest()
  }

  /** No clock runs while nobody waits here. */
  #rest(): void {
    if (this.#timer === null || this.#scheduler.hasWaiters) return
    clearInterval(this.#timer)
    this.#timer = null
  }

  #listen(): void {
    if (this.#isListening || !this.#isOpen) return
    let wake = this.#slots.nextWake()
    while (wake === null) wake = this.#slots.nextWake()
    this.#isListening = true
    void wake.then(() => {
      this.#isListening = false
      this.#listen()
      this.#scheduler.look(this.#nowMs())
      this.#rest()
    })
  }
}
