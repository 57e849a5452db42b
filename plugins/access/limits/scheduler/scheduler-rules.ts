/** Rules of the scheduler: capacity, reservations and slots of the classes, and the maximum class of tenants. */
import type { WorkerEntry, WorkerStatus } from '#kernel'
import { toTenant } from '#shared'
import { PRIORITIES, type Priority, type SchedulerConfig } from './scheduler-config.ts'
import { MAX_SLOTS } from './shared-slots.ts'

/** Slots of a worker without the capacity label, if other workers have it. */
const SLOTS_PER_UNLABELED_WORKER = 64
/** Slots of all workers, if none has the label. */
const SLOTS_WITHOUT_LABELS = 1_024
const CAPACITY_LABEL = 'max_running_requests'

export interface CapacityFacts {
  readonly capacity: number | null
  readonly maxConcurrentRequests: number
  readonly workers: readonly WorkerEntry[]
  status(slot: number): WorkerStatus
}

/** Slots over all threads; at least 1. */
export function sampleCapacity({ capacity, maxConcurrentRequests, workers, status }: CapacityFacts): number {
  if (capacity !== null) return capacity
  let reported = 0
  let unlabeled = 0
  for (const worker of workers) {
    if (status(worker.slot) !== 'ready') continue
    const slots = Number(worker.labels[CAPACITY_LABEL])
    if (Number.isInteger(slots) && slots > 0) reported += slots
    else unlabeled++
  }
  if (reported > 0) return reported + unlabeled * SLOTS_PER_UNLABELED_WORKER
  return maxConcurrentRequests > 0 ? maxConcurrentRequests : SLOTS_WITHOUT_LABELS
}

export function schedulerRules(config: SchedulerConfig, capacity: number): SchedulerRules {
  return {
    capacity: Math.min(capacity, MAX_SLOTS),
    maxReservedShare: config.maxReservedShare,
    classes: PRIORITIES.map((name) => config.classes[name]),
  }
}

/** Index of a priority class, case-insensitive; undefined for an unknown name. */
export function findPriority(name: string): number | undefined {
  const index = PRIORITIES.indexOf(name.trim().toLowerCase() as Priority)
  return index < 0 ? undefined : index
}

/** Maximum class by tenant. */
export class MaxClasses {
  readonly #byTenant: ReadonlyMap<string, number>
  readonly #fallback: number

  constructor({ tenants, defaultMaxClass }: SchedulerConfig) {
    this.#byTenant = new Map(
      tenants.map(({ tenant, maxClass }) => [toTenant(tenant), PRIORITIES.indexOf(maxClass)]),
    )
    this.#fallback = PRIORITIES.indexOf(defaultMaxClass)
  }

  of(tenant: string): number {
    return this.#byTenant.get(tenant) ?? this.#fallback
  }
}

export type ClassRules = Readonly<SchedulerConfig['classes'][Priority]>

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
