/** Balancing on one thread: keeps the compiled table current, picks, and counts every attempt exactly once. */
import type { Logger } from '../contracts/log.ts'
import type { Metrics } from '../contracts/metric.ts'
import type { PolicyFactory, PolicyParts, RandomSource } from '../contracts/policy.ts'
import type { RequestContext } from '../contracts/request.ts'
import type { EngineLoads, WorkerEntry, WorkerStatus, WorkerTable } from '../contracts/worker.ts'
import { CompiledTable } from './compiled-table.ts'
import type { Counters } from './counters.ts'
import { ModelPolicies } from './model-policies.ts'
import { type OnPickResolver, Picker, type SelectionListener } from './pick.ts'
import { PolicyRegistry, registerBuiltInPolicies } from './policies/registry.ts'
import { SlotAllocator } from './slot-allocator.ts'
import type { Attempt, PickOptions, WorkerBalance } from './worker-balance.ts'

/** The worker table as this thread sees it: a replica view fits. */
export interface TableSource {
  readonly current: WorkerTable
  /** Called after each swap, on this thread. */
  onChange(listener: (next: WorkerTable) => void): void
}

export interface ThreadBalanceOptions {
  /** This thread's view of the shared counters. */
  readonly counters: Counters
  readonly table: TableSource
  /** Policy of models whose first worker names none; checked by `checkDefaultPolicy`. */
  readonly defaultPolicy: string
  /** Finds the compiled `onPick` chain of a request's route. Default: no hooks. */
  readonly onPickHook?: OnPickResolver | null
  /** For the counters of policies. */
  readonly metrics: Metrics
  readonly shared: PolicyParts['shared']
  /** This thread's view of what engines report. */
  readonly loads: { readonly current: EngineLoads }
  /** Told of each pick, for metrics. */
  readonly onSelected?: SelectionListener | null
  /** Told when a worker names an unknown policy. */
  readonly log?: Logger
  /** For tests that need the same draws each time. Default Math.random. */
  readonly random?: RandomSource
}

/** An attempt that is in the count until its first `release`. */
class CountedAttempt implements Attempt {
  readonly worker: WorkerEntry
  readonly policy: string
  private readonly counters: Counters
  private isReleased = false

  constructor(worker: WorkerEntry, policy: string, counters: Counters) {
    this.worker = worker
    this.policy = policy
    this.counters = counters
    counters.increment(worker.slot)
  }

  succeeded(): void {}

  failed(): void {}

  release(): void {
    if (this.isReleased) return
    this.isReleased = true
    this.counters.decrement(this.worker.slot)
  }
}

export class ThreadBalance implements WorkerBalance {
  private readonly counters: Counters
  private readonly registry = new PolicyRegistry()
  private readonly defaultPolicy: string
  private readonly policies: ModelPolicies
  private readonly slots: SlotAllocator
  private readonly picker: Picker
  private table: CompiledTable

  constructor(options: ThreadBalanceOptions) {
    this.counters = options.counters
    this.defaultPolicy = options.defaultPolicy
    registerBuiltInPolicies(this.registry)
    const { metrics, shared, random = Math.random } = options
    this.policies = new ModelPolicies(this.registry, options.defaultPolicy, options.log ?? null, {
      metrics,
      shared,
      random,
    })
    this.slots = new SlotAllocator(options.counters)
    this.table = new CompiledTable(options.table.current)
    this.picker = new Picker(this.table, {
      counters: this.counters,
      policies: this.policies,
      onPick: options.onPickHook ?? null,
      onSelected: options.onSelected ?? null,
    })
    options.table.onChange((next) => this.swapTable(next))
  }

  get workers(): readonly WorkerEntry[] {
    return this.table.workers
  }

  pick(ctx: RequestContext, model: string, options?: PickOptions): Attempt {
    return new CountedAttempt(this.picker.pick(ctx, model, options?.excluded), 'policy', this.counters)
  }

  attempt(worker: WorkerEntry): Attempt {
    return new CountedAttempt(worker, 'fixed', this.counters)
  }

  usesPair(_model: string): boolean {
    return false
  }

  canonicalModel(model: string): string {
    return this.table.canonicalModel(model)
  }

  byId(id: string): WorkerEntry | undefined {
    return this.table.byId.get(id)
  }

  firstReady(accepts?: (worker: WorkerEntry) => boolean): WorkerEntry | undefined {
    return this.table.workers.find(
      (worker) => this.counters.isReady(worker.slot) && (accepts === undefined || accepts(worker)),
    )
  }

  status(slot: number): WorkerStatus {
    return this.counters.status(slot)
  }

  inFlight(slot: number): number {
    return this.counters.inFlight(slot)
  }

  setStatus(slot: number, status: WorkerStatus): void {
    this.counters.setStatus(slot, status)
  }

  allocateSlot(): number {
    return this.slots.allocate()
  }

  freeSlot(slot: number): void {
    this.slots.free(slot)
  }

  registerPolicy(name: string, factory: PolicyFactory): void {
    this.registry.register(name, factory)
  }

  policyNames(): readonly string[] {
    return this.registry.names()
  }

  /** For boot, once every plugin has registered its policies. @throws unknown_policy naming those that exist */
  checkDefaultPolicy(): void {
    this.registry.require(this.defaultPolicy)
  }

  private swapTable(next: WorkerTable): void {
    const previous = this.table
    this.table = new CompiledTable(next)
    this.picker.setTable(this.table)
    const leftSlots: number[] = []
    for (const { slot, id } of previous.workers) {
      if (this.table.bySlot.get(slot)?.id !== id) leftSlots.push(slot)
    }
    this.policies.update(this.table, leftSlots)
  }
}
