/** One request at the scheduler, and the lists in which it waits or runs. */

/** What the scheduler asks and tells the owner of a turn. */
export interface TurnOwner {
  /** It runs and has not sent its first byte. */
  isPreemptible(): boolean
  onAdmitted(): void
  /** It must end now, and release its turn when it has. @param by class that takes its place, 0-based */
  onPreempted(by: number): void
  onTimedOut(): void
}

export class Turn {
  /** 0 is the most urgent. */
  readonly priority: number
  readonly owner: TurnOwner
  state: 'new' | 'waiting' | 'running' | 'over' = 'new'
  /** Since when it waits, and until when it may; milliseconds. */
  sinceMs = 0
  deadlineMs = 0
  /** It had waited too long: it is let run to its end. */
  isProtected = false
  /** It was told to end for another. */
  isVictim = false
  /** Place in the order of arrival over all threads, while it waits. */
  ticket = 0
  next: Turn | null = null
  previous: Turn | null = null

  constructor(priority: number, owner: TurnOwner) {
    this.priority = priority
    this.owner = owner
  }
}

/** A turn is in one list at a time. */
export class TurnList {
  size = 0
  first: Turn | null = null
  last: Turn | null = null

  push(turn: Turn): void {
    turn.previous = this.last
    turn.next = null
    if (this.last === null) this.first = turn
    else this.last.next = turn
    this.last = turn
    this.size++
  }

  remove(turn: Turn): void {
    if (turn.previous === null) this.first = turn.next
    else turn.previous.next = turn.next
    if (turn.next === null) this.last = turn.previous
    else turn.next.previous = turn.previous
    turn.next = null
    turn.previous = null
    this.size--
  }
}
