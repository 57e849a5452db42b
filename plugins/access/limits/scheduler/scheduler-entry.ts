/** A request in the scheduler, and the linked lists of waiting and running requests. */

/** Callbacks of an entry. */
export interface EntryOwner {
  /** Whether the request has not sent its first byte. */
  isPreemptible(): boolean
  onAdmitted(): void
  /** The request must end and then call `Scheduler.end`. @param by class of the request that takes the slot, 0-based */
  onPreempted(by: number): void
  onTimedOut(): void
}

export class SchedulerEntry {
  /** 0 is the most urgent. */
  readonly priority: number
  readonly owner: EntryOwner
  state: 'new' | 'waiting' | 'running' | 'over' = 'new'
  /** Start of the wait and its deadline, in milliseconds. */
  sinceMs = 0
  deadlineMs = 0
  /** Admitted after its starvation time: not preempted. */
  isProtected = false
  /** Being preempted. */
  isVictim = false
  /** Position in the order of arrival over all threads. */
  ticket = 0
  next: SchedulerEntry | null = null
  previous: SchedulerEntry | null = null

  constructor(priority: number, owner: EntryOwner) {
    this.priority = priority
    this.owner = owner
  }
}

/**
 * Doubly linked list; an entry is in one list at a time. Not a Set, whose tables keep ended requests from the collector of young
 * objects, and whose first entry is found in time proportional to the removed ones.
 */
export class EntryList {
  size = 0
  first: SchedulerEntry | null = null
  last: SchedulerEntry | null = null

  push(entry: SchedulerEntry): void {
    entry.previous = this.last
    entry.next = null
    if (this.last === null) this.first = entry
    else this.last.next = entry
    this.last = entry
    this.size++
  }

  remove(entry: SchedulerEntry): void {
    if (entry.previous === null) this.first = entry.next
    else entry.previous.next = entry.next
    if (entry.next === null) this.last = entry.previous
    else entry.next.previous = entry.previous
    entry.next = null
    entry.previous = null
    this.size--
  }
}
