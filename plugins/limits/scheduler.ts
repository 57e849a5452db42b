/**
 * Decides which request runs: classes with reserved slots, queues, preemption, and an end to waiting too long.
 * Nothing but decisions; time comes as an argument. @source routing facts 3.5
 */
import { type Turn, TurnList } from './turn.ts'

export interface ClassRules {
  /** Slots kept against lower classes: the larger of the floor and the share of all. */
  readonly floor: number
  readonly share: number
  readonly queueSize: number
  readonly queueTimeoutMs: number
  readonly starvationMs: number
  readonly mayPreempt: boolean
}

export interface SchedulerRules {
  readonly capacity: number
  readonly maxReservedShare: number
  /** From the most to the least urgent. */
  readonly classes: readonly ClassRules[]
}

export type SchedulerAnswer = 'admitted' | 'waiting' | 'full'

/** Told of what metrics count and nobody asked for. */
export interface SchedulerEvents {
  onPreemption(victim: number, by: number): void
  onStarvation(priority: number): void
}

export class Scheduler {
  readonly #events: SchedulerEvents
  readonly #queues: readonly TurnList[]
  readonly #running: readonly TurnList[]
  #rules: SchedulerRules
  #reservations: readonly number[]
  #used = 0

  constructor(rules: SchedulerRules, events: SchedulerEvents) {
    this.#events = events
    this.#rules = rules
    this.#reservations = reservedSlots(rules)
    this.#queues = rules.classes.map(() => new TurnList())
    this.#running = rules.classes.map(() => new TurnList())
  }

  get capacity(): number {
    return this.#rules.capacity
  }

  /** Slots in use by all classes. */
  get used(): number {
    return this.#used
  }

  get reservations(): readonly number[] {
    return this.#reservations
  }

  usedBy(priority: number): number {
    return this.#running[priority].size
  }

  waiting(priority: number): number {
    return this.#queues[priority].size
  }

  get isAnyoneWaiting(): boolean {
    return this.#queues.some((queue) => queue.size > 0)
  }

  /** Slots that the class could take now; 0 or less when none. */
  available(priority: number): number {
    let free = this.#rules.capacity - this.#used
    for (let higher = 0; higher < priority; higher++)
      free -= Math.max(0, this.#reservations[higher] - this.#running[higher].size)
    return free
  }

  /** A new turn runs at once, waits, or is refused. Preempting calls the victim before this returns. */
  request(turn: Turn, nowMs: number): SchedulerAnswer {
    const { priority } = turn
    const rules = this.#rules.classes[priority]
    const queue = this.#queues[priority]
    if (queue.size === 0 && this.available(priority) > 0) {
      this.#run(turn)
      return 'admitted'
    }
    const victim = rules.mayPreempt ? this.#findVictim(priority) : null
    // With a victim the wait is over at once: it needs no place.
    if (victim === null && queue.size >= rules.queueSize) return 'full'
    turn.state = 'waiting'
    turn.sinceMs = nowMs
    turn.deadlineMs = nowMs + rules.queueTimeoutMs
    queue.push(turn)
    if (victim !== null) {
      victim.heir = priority
      this.#events.onPreemption(victim.priority, priority)
      victim.owner.onPreempted(priority)
    }
    return isRunning(turn) ? 'admitted' : 'waiting'
  }

  /** The turn is over, whatever it was doing; further calls do nothing. */
  end(turn: Turn, nowMs: number): void {
    const { state, heir, priority } = turn
    turn.state = 'over'
    if (state === 'waiting') this.#queues[priority].remove(turn)
    if (state !== 'running') return
    this.#running[priority].remove(turn)
    this.#used--
    if (heir >= 0) this.#grantHeir(heir)
    this.dispatch(nowMs)
  }

  /** Ends the wait of those whose time is over. */
  expire(nowMs: number): void {
    for (const queue of this.#queues) {
      for (let turn = queue.first; turn !== null; ) {
        const { next } = turn
        if (turn.deadlineMs <= nowMs) {
          queue.remove(turn)
          turn.state = 'over'
          turn.owner.onTimedOut()
        }
        turn = next
      }
    }
  }

  /** Gives free slots away: first to those who waited too long, then by class. */
  dispatch(nowMs: number): void {
    for (;;) {
      const next = this.#starvingHead(nowMs) ?? this.#nextByPriority()
      if (next === null) return
      this.#admit(next)
    }
  }

  /** Who waits keeps the deadline it began with. With fewer slots than used, nobody enters until enough have ended. */
  setRules(rules: SchedulerRules, nowMs: number): void {
    this.#rules = rules
    this.#reservations = reservedSlots(rules)
    this.dispatch(nowMs)
  }

  /** Everybody who waits runs; for the end of scheduling. */
  admitAll(): void {
    for (const queue of this.#queues) while (queue.first !== null) this.#admit(queue.first)
  }

  #admit(turn: Turn): void {
    this.#queues[turn.priority].remove(turn)
    this.#run(turn)
    turn.owner.onAdmitted()
  }

  #run(turn: Turn): void {
    turn.state = 'running'
    this.#running[turn.priority].push(turn)
    this.#used++
  }

  #grantHeir(priority: number): void {
    const head = this.#queues[priority].first
    if (head !== null && this.available(priority) > 0) this.#admit(head)
  }

  /** From the lowest class up; the most urgent class waits for nobody below it. */
  #starvingHead(nowMs: number): Turn | null {
    if (this.#used >= this.#rules.capacity) return null
    for (let priority = this.#queues.length - 1; priority > 0; priority--) {
      const head = this.#queues[priority].first
      if (head === null || nowMs - head.sinceMs < this.#rules.classes[priority].starvationMs) continue
      if (this.available(priority) <= 0 || this.#isOvertaking(priority)) {
        head.isProtected = true
        this.#events.onStarvation(priority)
      }
      return head
    }
    return null
  }

  #isOvertaking(priority: number): boolean {
    for (let higher = 0; higher < priority; higher++) if (this.#queues[higher].size > 0) return true
    return false
  }

  #nextByPriority(): Turn | null {
    for (let priority = 0; priority < this.#queues.length; priority++) {
      const head = this.#queues[priority].first
      if (head !== null && this.available(priority) > 0) return head
    }
    return null
  }

  /** The lowest class first, then the newest; null also when the freed slot would be kept for a higher class. */
  #findVictim(priority: number): Turn | null {
    if (this.available(priority) + 1 <= 0) return null
    for (let lower = this.#running.length - 1; lower > priority; lower--) {
      for (let turn = this.#running[lower].last; turn !== null; turn = turn.previous)
        if (turn.heir < 0 && !turn.isProtected && turn.owner.isPreemptible()) return turn
    }
    return null
  }
}

/** Slots kept for each class. From the top down, until the most that may be kept is reached. */
export function reservedSlots({ capacity, maxReservedShare, classes }: SchedulerRules): number[] {
  let left = Math.floor(capacity * maxReservedShare)
  return classes.map(({ floor, share }) => {
    const kept = Math.min(left, Math.max(floor, Math.ceil(share * capacity)))
    left -= kept
    return kept
  })
}

/** Asked again after a call that may have changed it. */
function isRunning(turn: Turn): boolean {
  return turn.state === 'running'
}
