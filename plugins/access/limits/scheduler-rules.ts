/** What the settings of the scheduler mean: how many slots there are, and who may ask for which class. */
import type { WorkerEntry, WorkerStatus } from '#kernel'
import { PRIORITIES, type SchedulerConfig } from './scheduler-config.ts'
import { MAX_SLOTS } from './shared-slots.ts'
import type { SchedulerRules } from './slot-rules.ts'
import { toTenant } from './tenant-name.ts'

/** Slots for a ready worker that does not say how many it takes, where others do; and for a fleet that says nothing. */
const SLOTS_PER_SILENT_WORKER = 64
const SLOTS_WITHOUT_REPORT = 1_024
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
  let silent = 0
  for (const worker of workers) {
    if (status(worker.slot) !== 'ready') continue
    const slots = Number(worker.labels[CAPACITY_LABEL])
    if (Number.isInteger(slots) && slots > 0) reported += slots
    else silent++
  }
  if (reported > 0) return reported + silent * SLOTS_PER_SILENT_WORKER
  return maxConcurrentRequests > 0 ? maxConcurrentRequests : SLOTS_WITHOUT_REPORT
}

export function schedulerRules(config: SchedulerConfig, capacity: number): SchedulerRules {
  return {
    capacity: Math.min(capacity, MAX_SLOTS),
    maxReservedShare: config.maxReservedShare,
    classes: PRIORITIES.map((name) => config.classes[name]),
  }
}

/** Place of a class by the word in a header, in any case; undefined for an unknown word. */
export function findPriority(word: string): number | undefined {
  const index = PRIORITIES.indexOf(word.trim().toLowerCase() as (typeof PRIORITIES)[number])
  return index < 0 ? undefined : index
}

/** Highest class by tenant. */
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
