/**
 * Decides which request runs: classes with reserved slots, queues, preemption, and an end to waiting too long.
 * One for each thread; all of them count in the same memory and come to the same decisions. Nothing but decisions:
 * time comes as an argument.
 */
import { MAX_SLOTS, type SharedSlots } from './shared-slots.ts'
import { type SchedulerRules, SlotRules } from './slot-rules.ts'
import { type Turn, TurnList } from './turn.ts'

export type SchedulerAnswer = 'admitted' | 'waiting' | 'full'

/** Told of what metrics count and nobody asked for. */
export interface SchedulerEvents {
  onPreemption(victim: number, by: number): void
  onStarvation(priority: number): void
}

/** Whose turn it is. */
interface Next {
  readonly priority: number
  readonly column: number
  /** It goes before others, or over what is kept for them, for its long wait. */
  readonly isPromoted: boolean
}

export class Scheduler {
  readonly #slots: SharedSlots
  readonly #events: SchedulerEvents
  /** Of this thread, by class. */
  readonly #queues: readonly TurnList[]
  readonly #running: readonly TurnList[]
  #rules: SlotRules

  constructor(rules: SchedulerRules, slots: SharedSlots, events: SchedulerEvents) {
    this.#slots = slots
    this.#events = events
    this.#rules = new SlotRules(rules)
    this.#queues = rules.classes.map(() => new TurnList())
    this.#running = rules.classes.map(() => new TurnList())
  }

  get reservations(): readonly number[] {
    return this.#rules.reservations
  }

  /** On this thread. */
  get hasWaiters(): boolean {
    return this.#queues.some((queue) => queue.size > 0)
  }

  /** Slots that the class could take now, over all threads; 0 or less when none. */
  available(priority: number): number {
    return this.#rules.available(this.#slots.used(), priority)
  }

  /** A new turn runs at once, waits, or is refused. Preempting calls the victim before this returns. */
  request(turn: Turn, nowMs: number): SchedulerAnswer {
    const { priority } = turn
    const { mayPreempt, queueSize } = this.#rules.classes[priority]
    if (!this.#isBehind(priority) && this.#take(priority)) {
      this.#run(turn)
      return 'admitted'
    }
    // With somebody here to end for it the wait is over at once: it needs no place.
    const hasVictim = mayPreempt && this.#findVictim(priority, nowMs) !== null
    const ticket = this.#slots.queue(priority, hasVictim ? MAX_SLOTS : queueSize)
    if (ticket === 0) return 'full'
    this.#wait(turn, ticket, nowMs)
    // A slot may have come free before the others could see who waits.
    this.dispatch(nowMs)
    if (mayPreempt && !isRunning(turn)) this.#makeRoom(priority, nowMs)
    return isRunning(turn) ? 'admitted' : 'waiting'
  }

  /** The turn is over, whatever it was doing; further calls do nothing. */
  end(turn: Turn, nowMs: number): void {
    const { state, priority } = turn
    if (state === 'waiting') this.#unqueue(turn)
    turn.state = 'over'
    if (state === 'running') {
      this.#running[priority].remove(turn)
      this.#slots.giveBack(priority)
      if (turn.isVictim) this.#slots.victimEnded()
    }
    if (state === 'waiting' || state === 'running') this.dispatch(nowMs)
  }

  /** Ends the wait of those whose time is over. */
  expire(nowMs: number): void {
    for (const queue of this.#queues) {
      for (let turn = queue.first; turn !== null; ) {
        const { next } = turn
        if (turn.deadlineMs <= nowMs) {
          this.#unqueue(turn)
          turn.state = 'over'
          turn.owner.onTimedOut()
        }
        turn = next
      }
    }
  }

  /** Gives free slots away: first to those who waited too long, then by class. Wakes the thread whose turn it is. */
  dispatch(nowMs: number): void {
    const slots = this.#slots
    if (!slots.isAnyoneWaiting) return
    slots.seen(nowMs)
    for (;;) {
      const next = this.#next(nowMs)
      if (next === null) return
      if (next.column !== slots.column) {
        slots.wake(next.column)
        return
      }
      const head = this.#queues[next.priority].first
      if (head === null) return
      // Another thread may have been faster: look again.
      if (next.isPromoted ? this.#takeAny(next.priority) : this.#take(next.priority)) this.#admit(head, next)
    }
  }

  /** Another thread wants this one to look: for a turn that has come, or for somebody to end. */
  look(nowMs: number): void {
    this.#rules.classes.forEach(({ mayPreempt }, priority) => {
      if (mayPreempt) this.#preemptHere(priority, nowMs)
    })
    this.dispatch(nowMs)
  }

  /** From time to time while anyone waits here. */
  tick(nowMs: number): void {
    this.expire(nowMs)
    this.look(nowMs)
    this.#rules.classes.forEach(({ mayPreempt }, priority) => {
      if (mayPreempt && this.#queues[priority].size > 0) this.#makeRoom(priority, nowMs)
    })
  }

  /** Who waits keeps the deadline it began with. With fewer slots than used, nobody enters until enough have ended. */
  setRules(rules: SchedulerRules, nowMs: number): void {
    this.#rules = new SlotRules(rules)
    this.dispatch(nowMs)
  }

  /** Everybody who waits here runs; for the end of scheduling. */
  admitAll(): void {
    this.#queues.forEach((queue, priority) => {
      while (queue.first !== null) {
        this.#slots.take(priority, () => true)
        this.#admit(queue.first, { priority, column: this.#slots.column, isPromoted: false })
      }
    })
  }

  /** Somebody of its class or above waits: a free slot is on its way to them. */
  #isBehind(priority: number): boolean {
    return this.#slots.waiting().some((count, above) => above <= priority && count > 0)
  }

  #take(priority: number): boolean {
    return this.#slots.take(priority, (used) => this.#rules.available(used, priority) > 0)
  }

  /** Whatever is kept for others. */
  #takeAny(priority: number): boolean {
    return this.#slots.take(priority, (used) => this.#rules.free(used) > 0)
  }

  #wait(turn: Turn, ticket: number, nowMs: number): void {
    const queue = this.#queues[turn.priority]
    turn.state = 'waiting'
    turn.ticket = ticket
    turn.sinceMs = nowMs
    turn.deadlineMs = nowMs + this.#rules.classes[turn.priority].queueTimeoutMs
    queue.push(turn)
    this.#slots.seen(nowMs)
    if (queue.first === turn) this.#slots.showHead(turn.priority, ticket, nowMs)
  }

  #unqueue(turn: Turn): void {
    const queue = this.#queues[turn.priority]
    queue.remove(turn)
    this.#slots.unqueue(turn.priority)
    this.#slots.showHead(turn.priority, queue.first?.ticket ?? 0, queue.first?.sinceMs ?? 0)
  }

  #admit(turn: Turn, { priority, isPromoted }: Next): void {
    this.#unqueue(turn)
    this.#run(turn)
    turn.isProtected = isPromoted
    if (isPromoted) this.#events.onStarvation(priority)
    turn.owner.onAdmitted()
  }

  #run(turn: Turn): void {
    turn.state = 'running'
    this.#running[turn.priority].push(turn)
  }

  /** Ends requests of lower classes, here or on other threads. */
  #makeRoom(priority: number, nowMs: number): void {
    this.#preemptHere(priority, nowMs)
    if (this.#needsRoom(priority, this.#slots.victims)) this.#slots.wakeBelow(priority)
  }

  #preemptHere(priority: number, nowMs: number): void {
    const isNeeded = (victims: number) => this.#needsRoom(priority, victims)
    while (isNeeded(this.#slots.victims)) {
      const victim = this.#findVictim(priority, nowMs)
      // Counted first, so that no two threads end somebody for the same request.
      if (victim === null || !this.#slots.claimVictim(isNeeded)) return
      victim.isVictim = true
      this.#events.onPreemption(victim.priority, priority)
      victim.owner.onPreempted(priority)
    }
  }

  /** More wait in the class and above than slots are free or about to be. */
  #needsRoom(priority: number, victims: number): boolean {
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

  /** From the lowest class up; the most urgent class waits for nobody below it. */
  #starving(nowMs: number): { readonly priority: number; readonly column: number } | null {
    for (let priority = this.#queues.length - 1; priority > 0; priority--) {
      const head = this.#slots.head(priority, nowMs)
      if (head !== null && head.waitedMs >= this.#rules.classes[priority].starvationMs)
        return { priority, column: head.column }
    }
    return null
  }

  /**
   * On this thread, the lowest class first, then the newest. Null also when the freed slot would go elsewhere: be kept
   * for a higher class, or be given to who waited too long.
   */
  #findVictim(priority: number, nowMs: number): Turn | null {
    if (this.available(priority) < 0 || this.#starving(nowMs) !== null) return null
    for (let lower = this.#running.length - 1; lower > priority; lower--) {
      for (let turn = this.#running[lower].last; turn !== null; turn = turn.previous)
        if (!turn.isVictim && !turn.isProtected && turn.owner.isPreemptible()) return turn
    }
    return null
  }
}

/** Asked again after a call that may have changed it. */
function isRunning(turn: Turn): boolean {
  return turn.state === 'running'
}
