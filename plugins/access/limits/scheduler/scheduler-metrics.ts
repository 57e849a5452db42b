/** Metrics of the priority scheduler. */
import type { CounterHandle, Host, MetricFamily } from '#kernel'
import { LabelLimit } from '#shared'
import type { SchedulerEvents } from './scheduler.ts'
import { PRIORITIES } from './scheduler-config.ts'
import { reservedSlots, type SchedulerRules } from './scheduler-rules.ts'

/** Requests by class, over all threads. */
export interface SchedulerUse {
  readonly running: readonly number[]
  readonly waiting: readonly number[]
}

/** Result of scheduling a request. */
export type ScheduleOutcome =
  | 'admitted'
  | 'rejected_queue_full'
  | 'rejected_queue_timeout'
  | 'preempted'
  | 'client_cancelled'

/** Counters of one thread. */
export class SchedulerMetrics implements SchedulerEvents {
  readonly #outcomes: MetricFamily<CounterHandle>
  readonly #waits: MetricFamily<{ observe(seconds: number): void }>
  readonly #preemptions: MetricFamily<CounterHandle>
  readonly #clamps: MetricFamily<CounterHandle>
  readonly #unknown: MetricFamily<CounterHandle>
  readonly #starvations: MetricFamily<CounterHandle>
  readonly #tenants = new LabelLimit(0)

  constructor({ metrics }: Pick<Host, 'metrics'>) {
    const counter = (name: string, help: string, ...labels: string[]) =>
      metrics.counter({ name: `weir_scheduler_${name}`, help, labels })
    this.#outcomes = counter(
      'admit_total',
      'Requests handled by the scheduler, by outcome.',
      'class',
      'outcome',
    )
    this.#waits = metrics.histogram({
      name: 'weir_scheduler_queue_wait_seconds',
      help: 'Time in the scheduler queue.',
      labels: ['class'],
    })
    this.#preemptions = counter('preemption_total', 'Preempted requests.', 'victim_class', 'by_class')
    this.#clamps = counter(
      'clamp_total',
      'Requests lowered to the maximum class of their tenant.',
      'tenant',
      'requested_class',
      'effective_class',
    )
    this.#unknown = counter(
      'unknown_priority_value_total',
      'Requests with an unknown value in the priority header.',
      'tenant',
    )
    this.#starvations = counter(
      'starvation_promotion_total',
      'Requests admitted because they reached their starvation time.',
      'class',
    )
  }

  outcome(priority: number, outcome: ScheduleOutcome): void {
    this.#outcomes.labels(PRIORITIES[priority], outcome).inc()
  }

  waited(priority: number, ms: number): void {
    this.#waits.labels(PRIORITIES[priority]).observe(ms / 1000)
  }

  onPreemption(victim: number, by: number): void {
    this.outcome(victim, 'preempted')
    this.#preemptions.labels(PRIORITIES[victim], PRIORITIES[by]).inc()
  }

  clamped(tenant: string, requested: number, effective: number, maxTenants: number): void {
    this.#clamps.labels(this.#label(tenant, maxTenants), PRIORITIES[requested], PRIORITIES[effective]).inc()
  }

  unknownPriority(tenant: string, maxTenants: number): void {
    this.#unknown.labels(this.#label(tenant, maxTenants)).inc()
  }

  onStarvation(priority: number): void {
    this.#starvations.labels(PRIORITIES[priority]).inc()
  }

  /** Limits the number of series that tenants can create. */
  #label(tenant: string, max: number): string {
    this.#tenants.max = max
    return this.#tenants.admit(tenant)
  }
}

/** Gauges over all threads; call on control only. @param look returns rules and use, null if the scheduler is disabled */
export function declareSchedulerGauges(
  { metrics }: Host,
  look: () => { readonly rules: SchedulerRules; readonly use: SchedulerUse } | null,
): void {
  const gauge = (name: string, help: string) =>
    metrics.gauge({ name: `weir_scheduler_${name}`, help, labels: ['class'] })
  const inFlight = gauge('inflight', 'Running requests.')
  const depth = gauge('queue_depth', 'Waiting requests.')
  const sizes = gauge('queue_size_limit', 'Maximum number of waiting requests.')
  const pressure = gauge(
    'class_capacity_pressure',
    'Running and waiting requests divided by the slots available to the class.',
  )
  const utilization = metrics.gauge({
    name: 'weir_scheduler_utilization',
    help: 'Slots in use divided by all slots.',
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
  }, ['weir_scheduler_queue_depth'])
}
