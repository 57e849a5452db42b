/** The metrics of the scheduler: events counted on each thread, gauges told by control for all threads together. */
import type { CounterHandle, Host, MetricFamily } from '#kernel'
import { PRIORITIES } from './scheduler-config.ts'
import { reservedSlots, type SchedulerRules } from './slot-rules.ts'

const MAX_LABEL_LENGTH = 200
const OTHER = 'other'

/** Requests by class, over all threads. */
export interface SchedulerUse {
  readonly running: readonly number[]
  readonly waiting: readonly number[]
}

/** How a request fared at the scheduler. */
export type ScheduleOutcome =
  | 'admitted'
  | 'rejected_queue_full'
  | 'rejected_queue_timeout'
  | 'preempted'
  | 'client_cancelled'

/** Events of one thread. */
export class SchedulerMetrics {
  readonly #outcomes: MetricFamily<CounterHandle>
  readonly #waits: MetricFamily<{ observe(seconds: number): void }>
  readonly #preemptions: MetricFamily<CounterHandle>
  readonly #clamps: MetricFamily<CounterHandle>
  readonly #unknown: MetricFamily<CounterHandle>
  readonly #starvations: MetricFamily<CounterHandle>
  readonly #tenants = new Set<string>()

  constructor({ metrics }: Host) {
    const counter = (name: string, help: string, ...labels: string[]) =>
      metrics.counter({ name: `weir_scheduler_${name}`, help, labels })
    this.#outcomes = counter(
      'admit_total',
      'Requests at the scheduler, by how they fared.',
      'class',
      'outcome',
    )
    this.#waits = metrics.histogram({
      name: 'weir_scheduler_queue_wait_seconds',
      help: 'Waits at the scheduler.',
      labels: ['class'],
    })
    this.#preemptions = counter('preemption_total', 'Requests ended for others.', 'victim_class', 'by_class')
    this.#clamps = counter(
      'clamp_total',
      'Requests lowered to the highest class of their tenant.',
      'tenant',
      'requested_class',
      'effective_class',
    )
    this.#unknown = counter('unknown_priority_value_total', 'Unknown words in the priority header.', 'tenant')
    this.#starvations = counter('starvation_promotion_total', 'Requests let in for their long wait.', 'class')
  }

  outcome(priority: number, outcome: ScheduleOutcome): void {
    this.#outcomes.labels(PRIORITIES[priority], outcome).inc()
  }

  waited(priority: number, ms: number): void {
    this.#waits.labels(PRIORITIES[priority]).observe(ms / 1000)
  }

  preempted(victim: number, by: number): void {
    this.outcome(victim, 'preempted')
    this.#preemptions.labels(PRIORITIES[victim], PRIORITIES[by]).inc()
  }

  clamped(tenant: string, asked: number, given: number, maxTenants: number): void {
    this.#clamps.labels(this.#label(tenant, maxTenants), PRIORITIES[asked], PRIORITIES[given]).inc()
  }

  unknownWord(tenant: string, maxTenants: number): void {
    this.#unknown.labels(this.#label(tenant, maxTenants)).inc()
  }

  starved(priority: number): void {
    this.#starvations.labels(PRIORITIES[priority]).inc()
  }

  /** The first tenants have series of their own, so that callers cannot make any number of them. */
  #label(tenant: string, max: number): string {
    if (this.#tenants.has(tenant)) return tenant
    if (this.#tenants.size >= max || tenant.length > MAX_LABEL_LENGTH) return OTHER
    this.#tenants.add(tenant)
    return tenant
  }
}

/** On control only. @param look the rules and what runs and waits over all threads; null while the scheduler is off */
export function declareSchedulerGauges(
  { metrics }: Host,
  look: () => { readonly rules: SchedulerRules; readonly use: SchedulerUse } | null,
): void {
  const gauge = (name: string, help: string) =>
    metrics.gauge({ name: `weir_scheduler_${name}`, help, labels: ['class'] })
  const inFlight = gauge('inflight', 'Running requests.')
  const depth = gauge('queue_depth', 'Waiting requests.')
  const sizes = gauge('queue_size_limit', 'Requests that may wait.')
  const pressure = gauge(
    'class_capacity_pressure',
    'Running and waiting requests over the slots of the class.',
  )
  const utilization = metrics.gauge({
    name: 'weir_scheduler_utilization',
    help: 'Slots in use over all slots.',
  })
  metrics.onCollect(() => {
    const now = look()
    if (now === null) return
    const { rules, use } = now
    const kept = reservedSlots(rules)
    let reach = rules.capacity
    PRIORITIES.forEach((name, priority) => {
      inFlight.labels(name).value = use.running[priority]
      depth.labels(name).value = use.waiting[priority]
      sizes.labels(name).value = rules.classes[priority].queueSize
      pressure.labels(name).value = (use.running[priority] + use.waiting[priority]) / Math.max(1, reach)
      reach -= kept[priority]
    })
    utilization.labels().value = use.running.reduce((sum, count) => sum + count, 0) / rules.capacity
  })
}
