/** The metrics of admission: counted where requests come in, gauges told by control for all threads together. */
import type { CounterHandle, Host, MetricFamily } from '#kernel'
import type { GateUse } from './shared-gate.ts'

/** What all kinds of admission count. */
export class LimitsMetrics {
  readonly allowed: CounterHandle
  readonly rejected: CounterHandle
  readonly #reasons: MetricFamily<CounterHandle>
  readonly #wait: { observe(seconds: number): void }

  constructor({ metrics }: Host) {
    const results = metrics.counter({
      name: 'weir_http_rate_limit_total',
      help: 'Requests that came to admission.',
      labels: ['result'],
    })
    this.allowed = results.labels('allowed')
    this.rejected = results.labels('rejected')
    this.#reasons = metrics.counter({
      name: 'weir_limits_rejections_total',
      help: 'Requests that admission refused, by error code.',
      labels: ['reason'],
    })
    this.#wait = metrics
      .histogram({ name: 'weir_limits_queue_wait_seconds', help: 'Waits at the concurrency limit.' })
      .labels()
  }

  refused(code: string): void {
    this.rejected.inc()
    this.#reasons.labels(code).inc()
  }

  waited(ms: number): void {
    this.#wait.observe(ms / 1000)
  }
}

/** On control only: what the numbers in shared memory say. */
export function declareGateGauges({ metrics }: Host, use: () => GateUse): void {
  const waiting = metrics
    .gauge({ name: 'weir_limits_queue_depth', help: 'Requests that wait at the concurrency limit.' })
    .labels()
  const inUse = metrics
    .gauge({
      name: 'weir_limits_concurrency_used',
      help: 'Requests that hold a permit of the concurrency limit.',
    })
    .labels()
  metrics.onCollect(() => {
    const now = use()
    waiting.value = now.waiting
    inUse.value = now.inUse
  })
}
