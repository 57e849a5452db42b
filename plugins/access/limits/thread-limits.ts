/** Builds the limits of one thread over the memory that all threads share. */
import { type Host, Interval, ModelTargets, RequestSteps } from '#kernel'
import { toTenant } from '#shared'
import { Admission, type LimitedModels } from './admission.ts'
import {
  Allowance,
  AskTokens,
  type BucketFacts,
  GLOBAL_BUCKET,
  type LimitSharing,
  RATE_BUCKET,
  ReadTokens,
} from './allowance/allowance.ts'
import { AllowanceMemory } from './allowance/allowance-memory.ts'
import { type AdmissionState, ConcurrencyLimiter } from './concurrency-limiter.ts'
import type { LimitsConfig } from './config.ts'
import { declarePermitGauges, LimitsMetrics } from './limits-metrics.ts'
import { isLimiting } from './limits-settings.ts'
import { PermitQueue } from './permits/permit-queue.ts'
import { SharedPermits } from './permits/shared-permits.ts'
import { BucketTable } from './rates/bucket-table.ts'
import { RateLimit } from './rates/rate-limit.ts'
import { TenantLimiter } from './rates/tenant-limiter.ts'
import { RunningTable } from './running/running-table.ts'
import { Scheduler } from './scheduler/scheduler.ts'
import { PRIORITIES } from './scheduler/scheduler-config.ts'
import { declareSchedulerGauges, SchedulerMetrics } from './scheduler/scheduler-metrics.ts'
import { SchedulerQueue } from './scheduler/scheduler-queue.ts'
import { type SchedulerRules, sampleCapacity, schedulerRules } from './scheduler/scheduler-rules.ts'
import { SharedSlots } from './scheduler/shared-slots.ts'

/** Requests and tokens, of the tenant and of one model rule. */
const BUCKETS_PER_TENANT = 4
/** Of the whole gateway. */
const RATE_BUCKETS = 2
/** Interval at which the capacity of the workers is recalculated, in milliseconds. */
const SAMPLE_MS = 5_000

export class ThreadLimits {
  readonly admission: Admission
  readonly #host: Host
  readonly #permits: SharedPermits
  readonly #permitQueue: PermitQueue
  /** Buckets of one word: of `requestsPerSecond`, and of the global limit while the engine is away. */
  readonly #rate: BigInt64Array
  readonly #globalRate: BigInt64Array
  readonly #tenants: TenantLimiter
  readonly #running: RunningTable
  readonly #schedulerQueue: SchedulerQueue
  readonly #slots: SharedSlots
  #settings: LimitsConfig
  #sharing: LimitSharing = { globalPerSecond: null, isShared: false }
  #rates: readonly RateLimit[] = []
  #allowance: Allowance | null = null
  #capacity: number
  readonly #samples = new Interval(SAMPLE_MS, () => this.#applyCapacity())

  /** Call in `register`, because it allocates shared memory. */
  constructor(host: Host, config: LimitsConfig) {
    const { threadIndex, kernelConfig } = host
    const columns = kernelConfig.threads + 1
    this.#host = host
    this.#settings = config
    this.#permits = new SharedPermits(
      host.shared('permits', SharedPermits.bytes(columns)),
      threadIndex,
      nowMs,
    )
    this.#permitQueue = new PermitQueue(this.#permits, config, nowMs)
    const rates = host.shared('rates', RATE_BUCKETS * BigInt64Array.BYTES_PER_ELEMENT)
    this.#rate = new BigInt64Array(rates, 0, 1)
    this.#globalRate = new BigInt64Array(rates, BigInt64Array.BYTES_PER_ELEMENT, 1)
    const rows = config.tenants.maxTenants * BUCKETS_PER_TENANT
    const table = new BucketTable(host.shared('tenants', BucketTable.bytes(rows)))
    this.#tenants = new TenantLimiter(table, config.tenants)
    const { maxTenants } = config.tenants
    const running = host.shared('running', RunningTable.bytes(maxTenants, columns))
    this.#running = new RunningTable(running, maxTenants, threadIndex)
    this.#slots = new SharedSlots(host.shared('scheduler', SharedSlots.bytes(columns)), threadIndex)
    const metrics = new LimitsMetrics(host)
    const schedulerMetrics = new SchedulerMetrics(host)
    this.#capacity = this.#sample()
    const scheduler = new Scheduler(this.#rules, this.#slots, schedulerMetrics)
    this.#schedulerQueue = new SchedulerQueue(scheduler, this.#slots, nowMs)
    const concurrency = new ConcurrencyLimiter(
      { permits: this.#permitQueue, scheduler: this.#schedulerQueue, metrics, schedulerMetrics },
      config,
    )
    const slot = host.slot<AdmissionState>()
    this.admission = new Admission(
      {
        slot,
        models: modelsOf(host),
        tenants: this.#tenants,
        running: this.#running,
        concurrency,
        metrics,
        steps: host.find(RequestSteps),
        nowNs: process.hrtime.bigint,
      },
      config,
      this.#openRates(),
    )
    if (host.isControl) this.#declareGauges()
  }

  get settings(): LimitsConfig {
    return this.#settings
  }

  /** Releases what a dead thread of this index held. */
  start(): void {
    this.#permits.reset()
    this.#running.reset()
    this.#slots.reset()
    this.#followCapacity()
  }

  stop(): void {
    this.#permitQueue.close()
    this.#schedulerQueue.close()
    this.#samples.stop()
  }

  /** Whether any limit is set. */
  get isLimiting(): boolean {
    return isLimiting(this.#settings) || this.#sharing.globalPerSecond !== null
  }

  /** Stocks of shared limits. The block exists only in a mesh. */
  openAllowanceMemory(): AllowanceMemory {
    const buckets = this.#settings.tenants.maxTenants * BUCKETS_PER_TENANT + RATE_BUCKETS
    return new AllowanceMemory(this.#host.shared('allowance', AllowanceMemory.bytes(buckets)))
  }

  setLimits(settings: LimitsConfig): void {
    this.#settings = settings
    this.#apply()
    this.#followCapacity()
  }

  setSharing(sharing: LimitSharing): void {
    this.#sharing = sharing
    if (this.#allowance === null && (sharing.isShared || sharing.globalPerSecond !== null)) {
      this.#allowance = new Allowance(this.openAllowanceMemory(), (needs) =>
        this.#host.command(AskTokens, needs),
      )
    }
    if (this.#allowance !== null && sharing.isShared) this.#tenants.share(this.#allowance)
    this.#apply()
  }

  /** Current settings and their use. */
  async show(tenant: string | null, model: string | null): Promise<unknown> {
    const nowNs = process.hrtime.bigint()
    return {
      limits: this.#settings,
      use: {
        ...this.#permits.use,
        rateLeft: await this.#rateLeft(nowNs),
        scheduler: this.#settings.scheduler.enabled ? this.#showScheduler() : null,
        ...(tenant === null
          ? {}
          : {
              tenant: await this.#showTenant(tenant, model, nowNs),
              tenantRunning: this.#running.running(toTenant(tenant)),
            }),
      },
    }
  }

  #apply(): void {
    this.#rates = this.#openRates()
    this.admission.setLimits(this.#settings, this.#rates, this.#allowance)
  }

  #openRates(): RateLimit[] {
    const { requestsPerSecond, burst } = this.#settings
    const { globalPerSecond, isShared } = this.#sharing
    const allowance = this.#allowance
    const rates: RateLimit[] = []
    if (requestsPerSecond > 0) {
      const sharing = allowance !== null && isShared ? { allowance, name: RATE_BUCKET } : null
      rates.push(new RateLimit(this.#rate, requestsPerSecond, burst, sharing))
    }
    // Last: what other limits refuse takes nothing from the other gateways.
    if (allowance !== null && globalPerSecond !== null)
      rates.push(new RateLimit(this.#globalRate, globalPerSecond, 0, { allowance, name: GLOBAL_BUCKET }))
    return rates
  }

  async #rateLeft(nowNs: bigint): Promise<number | null> {
    const rate = this.#rates.at(0)
    if (rate === undefined) return null
    if (rate.shared === null) return rate.left(nowNs)
    return (await this.#tokensLeft([rate.shared.facts]))?.[0] ?? null
  }

  async #showTenant(tenant: string, model: string | null, nowNs: bigint): Promise<unknown> {
    const shown = this.#tenants.show(tenant, model, nowNs)
    const buckets = shown.flatMap(({ shared }) => (shared === null ? [] : [shared]))
    const left = buckets.length === 0 ? null : await this.#tokensLeft(buckets)
    return shown.map(({ shared: _, ...state }, at) => ({ ...state, left: left?.[at] ?? state.left }))
  }

  async #tokensLeft(buckets: readonly BucketFacts[]): Promise<readonly number[] | null> {
    return this.#host.command(ReadTokens, buckets)
  }

  #declareGauges(): void {
    declarePermitGauges(this.#host, () => this.#permits.use)
    declareSchedulerGauges(this.#host, () => {
      if (!this.#settings.scheduler.enabled) return null
      return {
        rules: { ...this.#rules, capacity: this.#sample() },
        use: { running: this.#slots.used(), waiting: this.#slots.waiting() },
      }
    })
  }

  #showScheduler(): unknown {
    const running = this.#slots.used()
    const waiting = this.#slots.waiting()
    const classes = PRIORITIES.map((name, at) => [name, { running: running[at], waiting: waiting[at] }])
    return { capacity: this.#rules.capacity, classes: Object.fromEntries(classes) }
  }

  get #rules(): SchedulerRules {
    return schedulerRules(this.#settings.scheduler, this.#capacity)
  }

  /** Samples are taken only while the scheduler is enabled. */
  #followCapacity(): void {
    const { enabled } = this.#settings.scheduler
    if (!this.#host.isData) return
    if (enabled) {
      this.#applyCapacity()
      this.#samples.start()
    } else this.#samples.stop()
  }

  #applyCapacity(): void {
    this.#capacity = this.#sample()
    this.#schedulerQueue.open(this.#rules)
  }

  #sample(): number {
    const { balance } = this.#host
    const { scheduler, maxConcurrentRequests } = this.#settings
    return sampleCapacity({
      capacity: scheduler.capacity,
      maxConcurrentRequests,
      workers: balance.workers,
      status: (slot) => balance.status(slot),
    })
  }
}

/** Monotonic clock that all threads share. */
export function nowMs(): number {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1_000 + nanos / 1e6
}

function modelsOf(host: Host): LimitedModels {
  const { balance } = host
  return {
    named: (ctx, model) => {
      const plan = host.find(ModelTargets)?.planOf(ctx, model) ?? null
      return plan === null
        ? [balance.canonicalModel(model)]
        : [model, balance.canonicalModel(plan.targets[plan.start].model)]
    },
    served: () => {
      const { workers } = balance
      if (workers.some(({ models }) => models.length === 0)) return null
      return [...new Set(workers.flatMap(({ models }) => models.map(({ id }) => id)))]
    },
  }
}
