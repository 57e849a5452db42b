/** Slot reservations of the priority classes, and the slots available to each class. */

export interface ClassRules {
  /** The reservation is the larger of `floor` and `share` of the capacity. */
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
  /** From highest to lowest priority. */
  readonly classes: readonly ClassRules[]
}

/** Scheduler rules with the computed reservations. */
export class SlotRules {
  readonly capacity: number
  readonly classes: readonly ClassRules[]
  /** Slots reserved for each class. */
  readonly reservations: readonly number[]

  constructor(rules: SchedulerRules) {
    this.capacity = rules.capacity
    this.classes = rules.classes
    this.reservations = reservedSlots(rules)
  }

  /** Free slots minus unused reservations of higher classes; 0 or less if none. */
  available(used: readonly number[], priority: number): number {
    let free = this.free(used)
    for (let higher = 0; higher < priority; higher++)
      free -= Math.max(0, this.reservations[higher] - used[higher])
    return free
  }

  /** Free slots, reserved or not; negative if the capacity has shrunk. */
  free(used: readonly number[]): number {
    let free = this.capacity
    for (const count of used) free -= count
    return free
  }
}

/** Slots reserved for each class, from the highest down, limited by `maxReservedShare`. */
export function reservedSlots({ capacity, maxReservedShare, classes }: SchedulerRules): number[] {
  let left = Math.floor(capacity * maxReservedShare)
  return classes.map(({ floor, share }) => {
    const kept = Math.min(left, Math.max(floor, Math.ceil(share * capacity)))
    left -= kept
    return kept
  })
}
