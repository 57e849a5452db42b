/** The gauges that show what engines say about their load; a series lives as long as its worker reports. */
import type { GaugeHandle, MetricFamily, Metrics, PairLoad, RankLoad, WorkerEntry } from '#kernel'

const LABELS = ['worker', 'model', 'dp_rank'] as const
const PAIR_LABELS = ['worker', 'role', 'dp_rank'] as const
const UNTOLD = -1

interface EngineGauge {
  readonly family: MetricFamily<GaugeHandle>
  readonly read: (report: RankLoad) => number
}

interface PairGauge {
  readonly family: MetricFamily<GaugeHandle>
  readonly read: (pair: PairLoad) => number
}

/** Of pairs, the role in place of the model. */
type Series = readonly [worker: string, model: string, rank: string]

export class EngineMetrics {
  readonly #gauges: readonly EngineGauge[]
  readonly #pairGauges: readonly PairGauge[]
  /** The same of workers that serve halves of requests. */
  readonly #pairSeries = new Map<string, readonly Series[]>()
  /** What each worker's last report set, by worker id. */
  readonly #series = new Map<string, readonly Series[]>()

  constructor(metrics: Metrics) {
    const gauge = (name: string, help: string, read: EngineGauge['read']): EngineGauge => ({
      family: metrics.gauge({ name: `weir_engine_${name}`, help, labels: LABELS }),
      read,
    })
    this.#gauges = [
      gauge('running_requests', 'Requests that the engine runs.', (report) => report.runningRequests),
      gauge('waiting_requests', 'Requests in the queue of the engine.', (report) => report.waitingRequests),
      gauge('token_usage', 'KV memory in use, 0 to 1.', (report) => report.kvUsage),
      gauge(
        'gen_throughput',
        'Tokens that the engine generates a second.',
        (report) => report.tokensPerSecond,
      ),
      gauge(
        'cache_hit_rate',
        'Prompt tokens found in the prefix cache, 0 to 1.',
        (report) => report.cacheHitRate,
      ),
    ]
    const pairGauge = (name: string, help: string, read: PairGauge['read']): PairGauge => ({
      family: metrics.gauge({ name: `weir_engine_pd_${name}`, help, labels: PAIR_LABELS }),
      read,
    })
    const queueOf = (role: PairLoad['role']) => (pair: PairLoad) =>
      pair.role === role ? pair.queuedRequests : UNTOLD
    this.#pairGauges = [
      pairGauge(
        'kv_transfer_latency_ms',
        'Time that a hand-over of KV blocks takes.',
        (pair) => pair.transferMs,
      ),
      pairGauge('kv_transfer_speed_gb_s', 'Speed of it, gigabytes a second.', (pair) => pair.transferRate),
      pairGauge('prefill_queue_reqs', 'Requests in the queues of a prefill engine.', queueOf('prefill')),
      pairGauge('decode_queue_reqs', 'Requests in the queues of a decode engine.', queueOf('decode')),
    ]
  }

  /** What the engine does not tell has no series. */
  set(entry: WorkerEntry, reports: readonly RankLoad[]): void {
    const model = entry.models[0]?.id ?? 'unknown'
    this.remove(entry.id)
    const series = reports.map((report): Series => [entry.url, model, String(report.rank)])
    this.#series.set(entry.id, series)
    for (const { family, read } of this.#gauges) {
      for (const [place, report] of reports.entries()) {
        const value = read(report)
        if (value !== UNTOLD) family.labels(...series[place]).value = value
      }
    }
    this.#setPairs(entry, reports)
  }

  #setPairs(entry: WorkerEntry, reports: readonly RankLoad[]): void {
    const all: Series[] = []
    for (const { pair, rank } of reports) {
      if (pair === undefined) continue
      const series: Series = [entry.url, pair.role, String(rank)]
      all.push(series)
      for (const { family, read } of this.#pairGauges) {
        const value = read(pair)
        if (value !== UNTOLD) family.labels(...series).value = value
      }
    }
    if (all.length > 0) this.#pairSeries.set(entry.id, all)
  }

  remove(id: string): void {
    for (const series of this.#series.get(id) ?? [])
      for (const { family } of this.#gauges) family.remove(...series)
    this.#series.delete(id)
    for (const series of this.#pairSeries.get(id) ?? [])
      for (const { family } of this.#pairGauges) family.remove(...series)
    this.#pairSeries.delete(id)
  }
}
