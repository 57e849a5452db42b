/** Puts the parts of admission together on one thread, over memory that all threads share. */
import type { Host } from '#kernel'
import { Admission, type LimitedModels, rateOf } from './admission.ts'
import { tokensLeft } from './bucket.ts'
import { BucketTable } from './bucket-table.ts'
import type { LimitsConfig } from './config.ts'
import { GateQueue } from './gate-queue.ts'
import { declareGateGauges, LimitsMetrics } from './limits-metrics.ts'
import { Scheduler } from './scheduler.ts'
import { PRIORITIES } from './scheduler-config.ts'
import { declareSchedulerGauges, SchedulerMetrics } from './scheduler-metrics.ts'
import { SchedulerQueue } from './scheduler-queue.ts'
import { sampleCapacity, schedulerRules } from './scheduler-rules.ts'
import { SharedGate } from './shared-gate.ts'
import { SharedSlots } from './shared-slots.ts'
import type { SchedulerRules } from './slot-rules.ts'
import type { Stay } from './stay.ts'
import { TenantLimiter } from './tenant-limiter.ts'
import { Turnstile } from './turnstile.ts'

/** Two buckets of the tenant and two of a model rule. */
const BUCKETS_PER_TENANT = 4
/** How often the slots of workers are added up. */
const SAMPLE_MS = 5_000

export class ThreadLimits {
  readonly admission: Admission
  readonly #host: Host
  readonly #gate: SharedGate
  readonly #queue: GateQueue
  readonly #rate: BigInt64Array
  readonly #tenants: TenantLimiter
  readonly #scheduled: SchedulerQueue
  readonly #slots: SharedSlots
  #settings: LimitsConfig
  #capacity: number
  #timer: NodeJS.Timeout | null = null

  /** Only in `register`. */
  constructor(host: Host, config: LimitsConfig) {
    const { threadIndex, kernelConfig } = host
    const columns = kernelConfig.threads + 1
    this.#host = host
    this.#settings = config
    this.#gate = new SharedGate(host.shared('gate', SharedGate.bytes(columns)), threadIndex, nowMs)
    this.#queue = new GateQueue(this.#gate, config, nowMs)
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
    this.#scheduled = new SchedulerQueue(scheduler, this.#slots, nowMs)
    const turnstile = new Turnstile(
      { gate: this.#queue, queue: this.#scheduled, metrics, schedulerMetrics },
      config,
    )
    const slot = host.slot<Stay>()
    this.admission = new Admission(
      {
        slot,
        models: modelsOf(host.balance),
        rate: this.#rate,
        tenants: this.#tenants,
        turnstile,
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

  /** What a thread of this index held when it died is free again. */
  start(): void {
    this.#gate.reset()
    this.#slots.reset()
    this.#followCapacity()
  }

  stop(): void {
    this.#queue.close()
    this.#scheduled.close()
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  setLimits(settings: LimitsConfig): void {
    this.#settings = settings
    this.admission.setLimits(settings)
    this.#followCapacity()
  }

  /** The settings that hold, and what is in use. */
  show(tenant: string | null, model: string | null): unknown {
    const nowNs = process.hrtime.bigint()
    const rate = rateOf(this.#settings)
    return {
      limits: this.#settings,
      use: {
        ...this.#gate.use,
        rateLeft: rate === null ? null : tokensLeft(Atomics.load(this.#rate, 0), rate, nowNs),
        scheduler: this.#settings.scheduler.enabled ? this.#showScheduler() : null,
        ...(tenant === null ? {} : { tenant: this.#tenants.show(tenant, model, nowNs) }),
      },
    }
  }

  #declareGauges(): void {
    declareGateGauges(this.#host, () => this.#gate.use)
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

  /** The clock runs only while the scheduler is on. */
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
    this.#scheduled.open(this.#rules)
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

/** Monotonic and the same on all threads. */
function nowMs(): number {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1_000 + nanos / 1e6
}

function modelsOf(balance: Host['balance']): LimitedModels {
  return {
    canonical: (model) => balance.canonicalModel(model),
    served: () => {
      const { workers } = balance
      if (workers.some(({ models }) => models.length === 0)) return null
      return [...new Set(workers.flatMap(({ models }) => models.map(({ id }) => id)))]
    },
  }
}
