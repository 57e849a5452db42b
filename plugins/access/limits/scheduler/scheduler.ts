/**
 * Decides which request runs: priority classes with reserved slots, queues, preemption and starvation limits.
 * Each thread has one; all count in the same shared memory and come to the same decisions. Has no timers: time is an
 * argument.
 */

import { EntryList, type SchedulerEntry } from './scheduler-entry.ts'
import { type SchedulerRules, SlotRules } from './scheduler-rules.ts'
import { MAX_SLOTS, type SharedSlots } from './shared-slots.ts'

export type RequestResult = 'admitted' | 'waiting' | 'full'

/** Events for metrics. */
export interface SchedulerEvents {
  onPreemption(victim: number, by: number): void
  onStarvation(priority: number): void
}

/** The request that gets the next free slot. */
interface Next {
  readonly priority: number
  readonly column: number
  /** Admitted before higher classes or into reserved slots, because it reached its starvation time. */
  readonly isPromoted: boolean
}

export class Scheduler {
  readonly #slots: SharedSlots
  readonly #events: SchedulerEvents
  /** Requests of this thread, by class. */
  readonly #queues: readonly EntryList[]
  readonly #running: readonly EntryList[]
  #rules: SlotRules

  constructor(rules: SchedulerRules, slots: SharedSlots, events: SchedulerEvents) {
    this.#slots = slots
    this.#events = events
    this.#rules = new SlotRules(rules)
    this.#queues = rules.classes.map(() => new EntryList())
    this.#running = rules.classes.map(() => new EntryList())
  }

  /** Whether requests wait on this thread. */
  get hasWaiters(): boolean {
    return this.#queues.some((queue) => queue.size > 0)
  }

  /** Slots that the class can take now, over all threads; 0 or less if none. */
  available(priority: number): number {
    return this.#rules.available(this.#slots.used(), priority)
  }

  /** Admits, queues or rejects a request. Preempted requests are called before this returns. */
  request(entry: SchedulerEntry, nowMs: number): RequestResult {
    const { priority } = entry
    const { mayPreempt, queueSize } = this.#rules.classes[priority]
    if (!this.#isBehind(priority) && this.#take(priority)) {
      this.#run(entry)
      return 'admitted'
    }
    // A request that can preempt another on this thread does not wait, so it may exceed the queue size.
    const hasVictim = mayPreempt && this.#findVictim(priority, nowMs) !== null
    const ticket = this.#slots.joinQueue(priority, hasVictim ? MAX_SLOTS : queueSize)
    if (ticket === 0) return 'full'
    this.#wait(entry, ticket, nowMs)
    // A slot may have been released before other threads could see this request.
    this.dispatch(nowMs)
    if (mayPreempt && !isRunning(entry)) this.#preempt(priority, nowMs)
    return isRunning(entry) ? 'admitted' : 'waiting'
  }

  /** Ends a waiting or running request; idempotent. */
  end(entry: SchedulerEntry, nowMs: number): void {
    const { state, priority } = entry
    if (state === 'waiting') this.#leaveQueue(entry)
    entry.state = 'over'
    if (state === 'running') {
      this.#running[priority].remove(entry)
      this.#slots.release(priority)
      if (entry.isVictim) this.#slots.victimEnded()
    }
    if (state === 'waiting' || state === 'running') this.dispatch(nowMs)
  }

  /** Ends the wait of requests past their deadline. */
  expire(nowMs: number): void {
    for (const queue of this.#queues) {
      for (let entry = queue.first; entry !== null; ) {
        const { next } = entry
        if (entry.deadlineMs <= nowMs) {
          this.#leaveQueue(entry)
          entry.state = 'over'
          entry.owner.onTimedOut()
        }
        entry = next
      }
    }
  }

  /** Assigns free slots: first to starving requests, then by class. Wakes the thread whose request is next. */
  dispatch(nowMs: number): void {
    const slots = this.#slots
    if (!slots.isAnyoneWaiting) return
    slots.touch(nowMs)
    for (;;) {
      const next = this.#next(nowMs)
      if (next === null) return
      if (next.column !== slots.column) {
        slots.wake(next.column)
        return
      }
      const head = this.#queues[next.priority].first
      if (head === null) return
      // If another thread took the slot, the loop decides again.
      if (next.isPromoted ? this.#takeAny(next.priority) : this.#take(next.priority)) this.#admit(head, next)
    }
  }

  /** Called when another thread wakes this one, to admit or to preempt a request. */
  onWake(nowMs: number): void {
    this.#rules.classes.forEach(({ mayPreempt }, priority) => {
      if (mayPreempt) this.#preemptHere(priority, nowMs)
    })
    this.dispatch(nowMs)
  }

  /** Call periodically while requests wait on this thread. */
  tick(nowMs: number): void {
    this.expire(nowMs)
    this.onWake(nowMs)
    this.#rules.classes.forEach(({ mayPreempt }, priority) => {
      if (mayPreempt && this.#queues[priority].size > 0) this.#preempt(priority, nowMs)
    })
  }

  /** Waiting requests keep their deadline; running ones keep their slots even if the capacity shrinks. */
  setRules(rules: SchedulerRules, nowMs: number): void {
    this.#rules = new SlotRules(rules)
    this.dispatch(nowMs)
  }

  /** Admits every waiting request of this thread, when the scheduler is disabled. */
  admitAll(): void {
    this.#queues.forEach((queue, priority) => {
      while (queue.first !== null) {
        this.#slots.take(priority, () => true)
        this.#admit(queue.first, { priority, column: this.#slots.column, isPromoted: false })
      }
    })
  }

  /** Whether requests of this class or above wait; they take free slots first. */
  #isBehind(priority: number): boolean {
    return this.#slots.waiting().some((count, above) => above <= priority && count > 0)
  }

  #take(priority: number): boolean {
    return this.#slots.take(priority, (used) => this.#rules.available(used, priority) > 0)
  }

  /** Ignores reservations. */
  #takeAny(priority: number): boolean {
    return this.#slots.take(priority, (used) => this.#rules.free(used) > 0)
  }

  #wait(entry: SchedulerEntry, ticket: number, nowMs: number): void {
    const queue = this.#queues[entry.priority]
    entry.state = 'waiting'
    entry.ticket = ticket
    entry.sinceMs = nowMs
    entry.deadlineMs = nowMs + this.#rules.classes[entry.priority].queueTimeoutMs
    queue.push(entry)
    this.#slots.touch(nowMs)
    if (queue.first === entry) this.#slots.publishHead(entry.priority, ticket, nowMs)
  }

  #leaveQueue(entry: SchedulerEntry): void {
    const queue = this.#queues[entry.priority]
    queue.remove(entry)
    this.#slots.leaveQueue(entry.priority)
    this.#slots.publishHead(entry.priority, queue.first?.ticket ?? 0, queue.first?.sinceMs ?? 0)
  }

  #admit(entry: SchedulerEntry, { priority, isPromoted }: Next): void {
    this.#leaveQueue(entry)
    this.#run(entry)
    entry.isProtected = isPromoted
    if (isPromoted) this.#events.onStarvation(priority)
    entry.owner.onAdmitted()
  }

  #run(entry: SchedulerEntry): void {
    entry.state = 'running'
    this.#running[entry.priority].push(entry)
  }

  /** Preempts requests of lower classes, on this thread or on others. */
  #preempt(priority: number, nowMs: number): void {
    this.#preemptHere(priority, nowMs)
    if (this.#needsSlots(priority, this.#slots.victims)) this.#slots.wakeBelow(priority)
  }

  #preemptHere(priority: number, nowMs: number): void {
    const isNeeded = (victims: number) => this.#needsSlots(priority, victims)
    while (isNeeded(this.#slots.victims)) {
      const victim = this.#findVictim(priority, nowMs)
      // Claimed first, so that two threads do not preempt for the same request.
      if (victim === null || !this.#slots.claimVictim(isNeeded)) return
      victim.isVictim = true
      this.#events.onPreemption(victim.priority, priority)
      victim.owner.onPreempted(priority)
    }
  }

  /** Whether more requests wait in the class and above than slots are free or being released by preemption. */
  #needsSlots(priority: number, victims: number): boolean {
    const waiting = this.#slots.waiting()
    if (waiting[priority] === 0) return false
    let wanted = 0
    for (let above = 0; above <= priority; above++) wanted += waiting[above]
    return wanted > victims + Math.max(0, this.available(priority))
  }

  #next(nowMs: number): Next | null {
    const used = this.#slots.used()
    if (this.#rules.free(used) <= 0) return null
    const starving = this.#starving(nowMs)
    if (starving !== null) {
      const { priority } = starving
      const isOvertaking = this.#slots.waiting().some((count, higher) => higher < priority && count > 0)
      return { ...starving, isPromoted: isOvertaking || this.#rules.available(used, priority) <= 0 }
    }
    for (let priority = 0; priority < this.#queues.length; priority++) {
      const head = this.#slots.head(priority, nowMs)
      if (head !== null && this.#rules.available(used, priority) > 0)
        return { priority, column: head.column, isPromoted: false }
    }
    return null
  }

  /** Checks from the lowest class up; never the highest class. */
  #starving(nowMs: number): { readonly priority: number; readonly column: number } | null {
    for (let priority = this.#queues.length - 1; priority > 0; priority--) {
      const head = this.#slots.head(priority, nowMs)
      if (head !== null && head.waitedMs >= this.#rules.classes[priority].starvationMs)
        return { priority, column: head.column }
    }
    return null
  }

  /**
   * The newest preemptible request of the lowest class on this thread. Null also if the released slot would go to a
   * reservation of a higher class or to a starving request.
   */
  #findVictim(priority: number, nowMs: number): SchedulerEntry | null {
    if (this.available(priority) < 0 || this.#starving(nowMs) !== null) return null
    for (let lower = this.#running.length - 1; lower > priority; lower--) {
      for (let entry = this.#running[lower].last; entry !== null; entry = entry.previous)
        if (!entry.isVictim && !entry.isProtected && entry.owner.isPreemptible()) return entry
    }
    return null
  }
}

/** A function, so that the compiler does not narrow `state` across calls that change it. */
function isRunning(entry: SchedulerEntry): boolean {
  return entry.state === 'running'
}
