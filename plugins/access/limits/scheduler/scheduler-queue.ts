/** Drives the scheduler of one thread: the timer while requests wait, and wake-ups by other threads. */

import { Interval } from '#kernel'
import type { RequestResult, Scheduler } from './scheduler.ts'
import type { SchedulerEntry } from './scheduler-entry.ts'
import type { SchedulerRules } from './scheduler-rules.ts'
import type { SharedSlots } from './shared-slots.ts'

/** Interval at which deadlines and starvation are checked while requests wait, in milliseconds. */
const CHECK_INTERVAL_MS = 50

export class SchedulerQueue {
  readonly #scheduler: Scheduler
  readonly #slots: SharedSlots
  readonly #nowMs: () => number
  readonly #interval = new Interval(CHECK_INTERVAL_MS, () => this.#tick())
  #isListening = false
  #isOpen = false

  /** @param nowMs a clock that all threads share, milliseconds */
  constructor(scheduler: Scheduler, slots: SharedSlots, nowMs: () => number) {
    this.#scheduler = scheduler
    this.#slots = slots
    this.#nowMs = nowMs
  }

  enter(entry: SchedulerEntry): RequestResult {
    const result = this.#scheduler.request(entry, this.#nowMs())
    if (result === 'waiting') this.#interval.start()
    return result
  }

  /** Releases the slot or the queue entry; idempotent. */
  end(entry: SchedulerEntry): void {
    this.#scheduler.end(entry, this.#nowMs())
    this.#stopIdleTimer()
  }

  /** Applies the rules and starts listening for wake-ups by other threads. */
  open(rules: SchedulerRules): void {
    this.#isOpen = true
    this.#scheduler.setRules(rules, this.#nowMs())
    this.#listen()
    this.#stopIdleTimer()
  }

  /** Admits every waiting request. */
  close(): void {
    this.#isOpen = false
    this.#scheduler.admitAll()
    this.#stopIdleTimer()
  }

  #tick(): void {
    this.#scheduler.tick(this.#nowMs())
    this.#stopIdleTimer()
  }

  #stopIdleTimer(): void {
    if (!this.#scheduler.hasWaiters) this.#interval.stop()
  }

  #listen(): void {
    if (this.#isListening || !this.#isOpen) return
    this.#isListening = true
    void this.#slots.nextWake().then(() => {
      this.#isListening = false
      this.#listen()
      this.#scheduler.onWake(this.#nowMs())
      this.#stopIdleTimer()
    })
  }
}
