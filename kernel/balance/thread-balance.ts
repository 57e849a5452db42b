/** Load balancing of one thread: compiles the worker table, picks workers and counts every attempt exactly once. */
import type { BreakerConfig } from '../config/breaker-config.ts'
import type { Logger } from '../contracts/log.ts'
import type { Metrics } from '../contracts/metric.ts'
import type { ModelTarget, ModelTargets } from '../contracts/model-targets.ts'
import type { PolicyParts, RandomSource } from '../contracts/policy.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { TrafficWatch } from '../contracts/traffic.ts'
import type {
  EngineLoads,
  PendingWorkers,
  WorkerEntry,
  WorkerStatus,
  WorkerTable,
} from '../contracts/worker.ts'
import { Breakers } from './breakers.ts'
import { CompiledTable } from './compiled-table.ts'
import { type AttemptCounters, CountedAttempt } from './counted-attempt.ts'
import { type Counters, SlotAllocator } from './counters.ts'
import { LatencyWeights, WEIGHT_PERIOD_MS } from './latency-weights.ts'
import { ModelPolicies, type PolicyNames } from './model-policies.ts'
import { Outliers } from './outliers.ts'
import { Picker } from './pick.ts'
import { PolicyRegistry } from './policy-registry.ts'
import type {
  Attempt,
  BreakerState,
  PickOptions,
  StallReports,
  WorkerBalance,
  WorkerFigures,
} from './worker-balance.ts'
import { LastErrors, WorkerStatistics } from './worker-statistics.ts'

/** The worker table of this thread; a `ReplicaView` implements it. */
export interface TableSource {
  readonly current: WorkerTable
  /** Called on this thread after each publication. */
  onChange(listener: (next: WorkerTable) => void): void
}

export interface ThreadBalanceOptions extends PolicyNames {
  /** This thread's view of the shared counters. */
  readonly counters: Counters
  readonly table: TableSource
  readonly breaker: BreakerConfig
  /** For the counters of policies. */
  readonly metrics: Metrics
  readonly shared: PolicyParts['shared']
  readonly loads: { readonly current: EngineLoads }
  /** Registered workers that are not in the table yet, for error messages. */
  readonly pending?: { readonly current: PendingWorkers }
  readonly log?: Logger
  /** Default `Math.random`. */
  readonly random?: RandomSource
  /** Wall clock in milliseconds, the same on all threads. Default `Date.now`. */
  readonly now?: () => number
}

const FIXED_WORKER = Object.freeze({ policy: 'fixed', choice: null })

export class ThreadBalance implements WorkerBalance {
  /** Null without virtual models; set before the first request. */
  targets: ModelTargets | null = null
  /** Plugins add their policies in `register`. */
  readonly registry = new PolicyRegistry()
  readonly #counters: Counters
  readonly #breakers: Breakers
  readonly #outliers: Outliers
  readonly #errors: LastErrors
  readonly #now: () => number
  readonly #statistics: WorkerStatistics
  readonly #latency: LatencyWeights
  /** On control. */
  readonly #weighing: NodeJS.Timeout | null
  readonly #counts: AttemptCounters
  readonly #policies: ModelPolicies
  readonly #slots: SlotAllocator
  readonly #picker: Picker
  #table: CompiledTable

  constructor(options: ThreadBalanceOptions) {
    const { counters, metrics, shared, random = Math.random, now = Date.now } = options
    this.#counters = counters
    this.#breakers = new Breakers(counters, options.breaker, now)
    this.#now = now
    this.#outliers = new Outliers(counters, options.breaker, now)
    this.#errors = new LastErrors(counters.layout)
    this.#statistics = new WorkerStatistics(counters)
    this.#latency = new LatencyWeights(counters)
    this.#counts = {
      counters,
      breakers: this.#breakers,
      outliers: this.#outliers,
      statistics: this.#statistics,
    }
    const { log } = options
    const parts = { metrics, shared, random, log }
    this.#policies = new ModelPolicies(this.registry, options, log ?? null, parts)
    this.#slots = new SlotAllocator(counters)
    this.#table = new CompiledTable(options.table.current)
    this.#policies.update(this.#table, [])
    this.#breakers.setWorkers(this.#table.workers)
    this.#picker = new Picker(this.#table, {
      ...this.#counts,
      latency: this.#latency,
      policies: this.#policies,
      loads: options.loads,
      pending: options.pending,
      random,
      now,
    })
    options.table.onChange((next) => this.#swapTable(next))
    const isControl = counters.threadIndex === 0
    this.#weighing = isControl
      ? setInterval(() => this.#latency.update(this.#table), WEIGHT_PERIOD_MS).unref()
      : null
  }

  /** Sets the observer of picks, outcomes and transitions of this thread. */
  watch(traffic: Pick<TrafficWatch, 'breakers' | 'selected'>): void {
    this.#picker.traffic = traffic
    this.#breakers.watch = traffic.breakers
    traffic.breakers.onWorkers(this.#table.workers)
  }

  get workers(): readonly WorkerEntry[] {
    return this.#table.workers
  }

  pick(ctx: RelayContext, model: string, options?: PickOptions): Attempt {
    return this.#picker.pick(ctx, model, options)
  }

  hasUntried(model: string, options: PickOptions): boolean {
    return this.#picker.hasUntried(model, options)
  }

  attempt(worker: WorkerEntry): Attempt {
    return new CountedAttempt(this.#counts, worker, FIXED_WORKER, this.#breakers.acquireAlways(worker))
  }

  usesPair(model: string): boolean {
    return this.#picker.usesPair(model)
  }

  canonicalModel(model: string): string {
    return this.#table.canonicalModel(model)
  }

  takesApi(model: string, api: string): boolean {
    const targets = this.targets === null ? null : this.targets.targetsOf(model)
    if (targets !== null) return targets.every((target) => this.#takes(target.model, api))
    return this.#takes(model, api)
  }

  #takes(model: string, api: string): boolean {
    const { apis } = this.#table.planOf(model)
    return apis === null || apis.has(api)
  }

  workersOf(model: string): readonly WorkerEntry[] {
    const targets = this.targets === null ? null : this.targets.targetsOf(model)
    if (targets === null) return this.#table.planOf(model).workers
    return [...new Set(targets.flatMap((target) => this.#workersOfTarget(target)))]
  }

  #workersOfTarget({ model, accepts }: ModelTarget): readonly WorkerEntry[] {
    const { workers } = this.#table.planOf(model)
    return accepts === null ? workers : workers.filter(accepts)
  }

  byId(id: string): WorkerEntry | undefined {
    return this.#table.byId.get(id)
  }

  firstReady(accepts?: (worker: WorkerEntry) => boolean): WorkerEntry | undefined {
    return this.#table.workers.find(
      (worker) => this.#counters.isReady(worker.slot) && (accepts === undefined || accepts(worker)),
    )
  }

  status(slot: number): WorkerStatus {
    return this.#counters.status(slot)
  }

  inFlight(slot: number): number {
    return this.#counters.inFlight(slot)
  }

  inFlightElsewhere(slot: number): number {
    return this.#counters.elsewhere(slot)
  }

  setInFlightElsewhere(slot: number, count: number): void {
    this.#counters.setElsewhere(slot, count)
  }

  breakerState(slot: number): BreakerState {
    const worker = this.#table.bySlot.get(slot)
    return worker === undefined ? 'closed' : this.#breakers.state(worker)
  }

  breakerRuns(slot: number): { failures: number; successes: number } {
    return this.#breakers.runs(slot)
  }

  figures(slot: number): WorkerFigures {
    const outlier = this.#outliers.figures(slot)
    return { ...this.#statistics.figures(slot), ...outlier, lastError: this.#errors.of(slot) }
  }

  refusals(slot: number): number {
    return this.#statistics.refusals(slot)
  }

  misnamed(slot: number): void {
    this.#statistics.misnamed(slot)
  }

  misnamedAnswers(slot: number): number {
    return this.#statistics.misnamedAnswers(slot)
  }

  noteError({ slot, id }: WorkerEntry, text: string): void {
    if (this.#table.bySlot.get(slot)?.id === id) this.#errors.note(slot, text, this.#now())
  }

  get stalls(): StallReports {
    return this.#outliers
  }

  setStatus(slot: number, status: WorkerStatus): void {
    this.#counters.setStatus(slot, status)
  }

  recovered(worker: WorkerEntry): void {
    this.#breakers.recovered(worker)
  }

  allocateSlot(): number {
    const slot = this.#slots.allocate()
    this.#counters.setElsewhere(slot, 0)
    this.#breakers.reset(slot)
    this.#outliers.reset(slot)
    this.#errors.reset(slot)
    this.#statistics.reset(slot)
    this.#latency.reset(slot)
    return slot
  }

  freeSlot(slot: number): void {
    this.#slots.free(slot)
  }

  policyOf(model: string): string {
    const plan = this.#table.planOf(model)
    const route = plan.whole ?? plan.prefill
    return route === null ? '' : this.#policies.nameFor(route)
  }

  usesPolicy(name: string): boolean {
    const wireName = this.registry.find(name)?.name
    return wireName !== undefined && this.#policies.inUse(this.#table.workers).has(wireName)
  }

  get readsLoads(): boolean {
    const names = this.#policies.inUse(this.#table.workers)
    return Array.from(names).some((name) => this.registry.find(name)?.options.readsLoads === true)
  }

  /**
   * Called at boot when every plugin has registered its policies.
   * @throws unknown_policy with the known names, policy_not_allowed with the setting
   */
  checkPolicies(): void {
    this.#policies.check()
  }

  /** Applies new settings from the next pick on. @throws unknown_policy, policy_not_allowed */
  reload(names: PolicyNames, breaker: BreakerConfig): void {
    this.#policies.rename(names, this.#table)
    this.#breakers.configure(breaker)
    this.#outliers.configure(breaker)
  }

  close(): void {
    if (this.#weighing !== null) clearInterval(this.#weighing)
    this.#policies.close()
  }

  #swapTable(next: WorkerTable): void {
    const previous = this.#table
    this.#table = new CompiledTable(next)
    this.#picker.setTable(this.#table)
    const leftSlots: number[] = []
    for (const { slot, id } of previous.workers) {
      if (this.#table.bySlot.get(slot)?.id !== id) leftSlots.push(slot)
    }
    this.#policies.update(this.#table, leftSlots)
    this.#breakers.setWorkers(this.#table.workers)
    this.#breakers.watch?.onWorkers(this.#table.workers)
  }
}
