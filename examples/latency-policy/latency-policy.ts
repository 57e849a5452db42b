/**
 * A balancing policy: the worker with the least expected wait, which is its recent latency times its queue. All threads
 * share what they measure.
 */
import { type AttemptReport, definePlugin, type Policy, type PolicyParts, Type } from 'weir-gateway'

/** Share of the newest latency in the average. */
const WEIGHT = 0.2
/** Share of picks that ignore the latency, so that a worker that was slow once is measured again. */
const EXPLORED = 0.05
/** Latency of a failed attempt, milliseconds: a fast failure must not look like a fast worker. */
const FAILURE_MS = 10_000

class LatencyPolicy implements Policy {
  readonly name = 'latency_aware'
  readonly needsBody = false
  readonly #latencies: Float64Array
  readonly #random: PolicyParts['random']

  constructor(latencies: Float64Array, random: PolicyParts['random']) {
    this.#latencies = latencies
    this.#random = random
  }

  pick({ length, slots, inFlightBySlot }: Parameters<Policy['pick']>[0]): number {
    if (this.#random() < EXPLORED) return Math.floor(this.#random() * length)
    let best = 0
    let least = Number.POSITIVE_INFINITY
    // Begins anywhere, so that equal workers get equal shares.
    const offset = Math.floor(this.#random() * length)
    for (let count = 0; count < length; count++) {
      const index = (offset + count) % length
      const slot = slots[index]
      // A worker without a measurement counts as fast and is measured next.
      const wait = this.#latencies[slot] * (inFlightBySlot[slot] + 1)
      if (wait >= least) continue
      best = index
      least = wait
    }
    return best
  }

  /** The row may become that of another worker. */
  onWorkerRemoved(slot: number): void {
    this.#latencies[slot] = 0
  }
}

/** Duration of the attempt, milliseconds; null if it says nothing about the worker. */
function latencyOf({ outcome, status, startedAtMs, endedAtMs }: AttemptReport): number | null {
  if (outcome === 'cancelled') return null
  if (outcome === 'success' && status < 500) return endedAtMs - startedAtMs
  return FAILURE_MS
}

export default definePlugin({
  manifest: {
    name: 'latency-policy',
    version: '0.1.0',
    description: 'Balances by recent latency and queue.',
    policies: ['latency_aware'],
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    const bytes = host.kernelConfig.limits.maxWorkers * Float64Array.BYTES_PER_ELEMENT
    let latencies: Float64Array | null = null
    host.policy('latency_aware', ({ random }) => {
      latencies ??= new Float64Array(host.shared('latencies', bytes))
      return new LatencyPolicy(latencies, random)
    })
    host.hook(
      'onAttempt',
      (_ctx, report) => {
        const latencyMs = latencyOf(report)
        if (latencyMs === null || latencies === null) return
        const { slot } = report.worker
        const before = latencies[slot]
        // Two threads may write at the same time: one of the two measurements is lost, which does no harm.
        latencies[slot] = before === 0 ? latencyMs : before + (latencyMs - before) * WEIGHT
      },
      { scope: 'all' },
    )
  },
})
