/** Metrics of the concurrency and rate limits. */
import type { CounterHandle, Host, MetricFamily } from '#kernel'
import type { PermitUse } from './permits/shared-permits.ts'

export class LimitsMetrics {
  readonly allowed: CounterHandle
  readonly #rejected: CounterHandle
  readonly #reasons: MetricFamily<CounterHandle>
  readonly #wait: { observe(seconds: number): void }

  constructor({ metrics }: Pick<Host, 'metrics'>) {
    const results = metrics.counter({
      name: 'weir_http_rate_limit_total',
      help: 'Requests checked by the limits plugin, by result.',
      labels: ['result'],
    })
    this.allowed = results.labels('allowed')
    this.#rejected = results.labels('rejected')
    this.#reasons = metrics.counter({
      name: 'weir_limits_rejections_total',
      help: 'Requests rejected by the limits plugin, by error code.',
      labels: ['reason'],
    })
    this.#wait = metrics
      .histogram({
        name: 'weir_limits_queue_wait_seconds',
        help: 'Time in the queue of the concurrency limit.',
      })
      .labels()
  }

  refused(code: string): void {
    this.#rejected.inc()
    this.#reasons.labels(code).inc()
  }

  waited(ms: number): void {
    this.#wait.observe(ms / 1000)
  }
}

/** Gauges over all threads, read from shared memory. Call on control only. */
export function declarePermitGauges({ metrics }: Host, use: () => PermitUse): void {
  const gauge = (name: string, help: string) => metrics.gauge({ name, help }).labels()
  const waiting = gauge('weir_limits_queue_depth', 'Requests in the queue of the concurrency limit.')
  const inUse = gauge('weir_limits_concurrency_used', 'Permits of the concurrency limit in use.')
  metrics.onCollect(() => {
    const now = use()
    waiting.value = now.waiting
    inUse.value = now.inUse
  }, ['weir_limits_queue_depth'])
}

export interface GrantMetrics {
  readonly answered: CounterHandle
  readonly failed: CounterHandle
}

/** Of limits that gateways share. Call on control only. @param isAlone whether limits are divided among gateways */
export function declareGrantMetrics({ metrics }: Host, isAlone: () => boolean): GrantMetrics {
  const asked = metrics.counter({
    name: 'weir_limits_grant_requests_total',
    help: 'Questions to the mesh engine for tokens of shared limits, by result.',
    labels: ['result'],
  })
  const alone = metrics
    .gauge({
      name: 'weir_limits_alone',
      help: '1 while the mesh engine does not answer and this gateway uses its share of the limits.',
    })
    .labels()
  metrics.onCollect(() => {
    alone.value = isAlone() ? 1 : 0
  })
  return { answered: asked.labels('answered'), failed: asked.labels('failed') }
}
