/** How many slots there are and for whom: what the classes keep, and what is left for each. */

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

/** The rules with what follows from them. */
export class SlotRules {
  readonly capacity: number
  readonly classes: readonly ClassRules[]
  /** Slots kept for each class. */
  readonly reservations: readonly number[]

  constructor(rules: SchedulerRules) {
    this.capacity = rules.capacity
    this.classes = rules.classes
    this.reservations = reservedSlots(rules)
  }

  /** Slots that a class could take beside those in use; 0 or less when none. What higher classes keep is not for it. */
  available(used: readonly number[], priority: number): number {
    let free = this.free(used)
    for (let higher = 0; higher < priority; higher++)
      free -= Math.max(0, this.reservations[higher] - used[higher])
    return free
  }

  /** Whoever they are kept for; below 0 when the capacity has shrunk. */
  free(used: readonly number[]): number {
    let free = this.capacity
    for (const count of used) free -= count
    return free
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
