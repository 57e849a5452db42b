/** The scheduler on one thread: requests that wait as promises, the clock, and its counts where other threads see them. */
import type { Scheduler, SchedulerRules } from './scheduler.ts'
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
  readonly #nowMs: () => number
  readonly #onChange: () => void
  #timer: NodeJS.Timeout | null = null

  /** @param onChange called after each change of who runs and who waits */
  constructor(scheduler: Scheduler, nowMs: () => number, onChange: () => void) {
    this.#scheduler = scheduler
    this.#nowMs = nowMs
    this.#onChange = onChange
  }

  /** @returns the request, running or waiting; null when the queue of its class is full */
  enter(priority: number, owner: Preemptible): ScheduledRequest | null {
    const request = new ScheduledRequest(priority, owner, (turn) => this.end(turn))
    const answer = this.#scheduler.request(request.turn, this.#nowMs())
    if (answer === 'waiting') this.#timer ??= setInterval(() => this.#tick(), LOOK_MS).unref()
    this.#onChange()
    return answer === 'full' ? null : request
  }

  /** Gives the slot or the place in the queue back; nothing when that has been done. */
  end(turn: Turn): void {
    this.#scheduler.end(turn, this.#nowMs())
    this.#changed()
  }

  setRules(rules: SchedulerRules): void {
    this.#scheduler.setRules(rules, this.#nowMs())
    this.#changed()
  }

  admitAll(): void {
    this.#scheduler.admitAll()
    this.#changed()
  }

  #tick(): void {
    const nowMs = this.#nowMs()
    this.#scheduler.expire(nowMs)
    this.#scheduler.dispatch(nowMs)
    this.#changed()
  }

  #changed(): void {
    if (this.#timer !== null && !this.#scheduler.isAnyoneWaiting) {
      clearInterval(this.#timer)
      this.#timer = null
    }
    this.#onChange()
  }
}
