/** Builds the limits of one thread over the memory that all threads share. */
import { type Host, ModelTargets } from '#kernel'
import { Admission, type LimitedModels, rateOf } from './admission.ts'
import type { AdmissionState } from './admission-state.ts'
import { ConcurrencyLimiter } from './concurrency-limiter.ts'
import type { LimitsConfig } from './config.ts'
import { declarePermitGauges, LimitsMetrics } from './limits-metrics.ts'
import { PermitQueue } from './permits/permit-queue.ts'
import { SharedPermits } from './permits/shared-permits.ts'
import { BucketTable } from './rates/bucket-table.ts'
import { TenantLimiter } from './rates/tenant-limiter.ts'
import { tokensLeft } from './rates/token-bucket.ts'
import { Scheduler } from './scheduler/scheduler.ts'
import { sampleCapacity, schedulerRules } from './scheduler/scheduler-capacity.ts'
import { PRIORITIES } from './scheduler/scheduler-config.ts'
import { declareSchedulerGauges, SchedulerMetrics } from './scheduler/scheduler-metrics.ts'
import { SchedulerQueue } from './scheduler/scheduler-queue.ts'
import { SharedSlots } from './scheduler/shared-slots.ts'
import type { SchedulerRules } from './scheduler/slot-rules.ts'

/** Requests and tokens, of the tenant and of one model rule. */
const BUCKETS_PER_TENANT = 4
/** Interval at which the capacity of the workers is recalculated, in milliseconds. */
const SAMPLE_MS = 5_000

export class ThreadLimits {
  readonly admission: Admission
  readonly #host: Host
  readonly #permits: SharedPermits
  readonly #permitQueue: PermitQueue
  readonly #rate: BigInt64Array
  readonly #tenants: TenantLimiter
  readonly #schedulerQueue: SchedulerQueue
  readonly #slots: SharedSlots
  #settings: LimitsConfig
  #capacity: number
  #timer: NodeJS.Timeout | null = null

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
    this.#rate = new BigInt64Array(host.shared('rate', BigInt64Array.BYTES_PER_ELEMENT))
    const rows = config.tenants.maxTenants * BUCKETS_PER_TENANT
    const table = new BucketTable(host.shared('tenants', BucketTable.bytes(rows)))
    this.#tenants = new TenantLimiter(table, config.tenants)
    this.#slots = new SharedSlots(host.shared('scheduler', SharedSlots.bytes(columns)), threadIndex)
    const metrics = new LimitsMetrics(host)
    const schedulerMetrics = new SchedulerMetrics(host)
    this.#capacity = this.#sample()
    const scheduler = new Scheduler(this.#rules, this.#slots, {
      onPreemption: (victim, by) => schedulerMetrics.preempted(victim, by),
      onStarvation: (priority) => schedulerMetrics.starved(priority),
    })
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
        rate: this.#rate,
        tenants: this.#tenants,
        concurrency,
        metrics,
        nowNs: process.hrtime.bigint,
      },
      config,
    )
    if (host.isControl) this.#declareGauges()
  }

  get settings(): LimitsConfig {
    return this.#settings
  }

  /** Releases what a dead thread of this index held. */
  start(): void {
    this.#permits.reset()
    this.#slots.reset()
    this.#followCapacity()
  }

  stop(): void {
    this.#permitQueue.close()
    this.#schedulerQueue.close()
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  setLimits(settings: LimitsConfig): void {
    this.#settings = settings
    this.admission.setLimits(settings)
    this.#followCapacity()
  }

  /** Current settings and their use. */
  show(tenant: string | null, model: string | null): unknown {
    const nowNs = process.hrtime.bigint()
    const rate = rateOf(this.#settings)
    return {
      limits: this.#settings,
      use: {
        ...this.#permits.use,
        rateLeft: rate === null ? null : tokensLeft(Atomics.load(this.#rate, 0), rate, nowNs),
        scheduler: this.#settings.scheduler.enabled ? this.#showScheduler() : null,
        ...(tenant === null ? {} : { tenant: this.#tenants.show(tenant, model, nowNs) }),
      },
    }
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

  /** The timer runs only while the scheduler is enabled. */
  #followCapacity(): void {
    const { enabled } = this.#settings.scheduler
    if (!this.#host.isData) return
    if (enabled) {
      this.#applyCapacity()
      this.#timer ??= setInterval(() => this.#applyCapacity(), SAMPLE_MS).unref()
    } else if (this.#timer !== null) {
      clearInterval(this.#timer)
      this.#timer = null
    }
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
function nowMs(): number {
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
