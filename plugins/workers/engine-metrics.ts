/** The gauges that show what engines say about their load; a series lives as long as its worker reports. */
import type { RankLoad } from '#contracts'
import type { GaugeHandle, MetricFamily, Metrics, WorkerEntry } from '#kernel'

const LABELS = ['worker', 'model', 'dp_rank'] as const
const UNTOLD = -1

interface EngineGauge {
  readonly family: MetricFamily<GaugeHandle>
  readonly read: (report: RankLoad) => number
}

type Series = readonly [worker: string, model: string, rank: string]

/** @source routing facts 6.2 */
export class EngineMetrics {
  readonly #gauges: readonly EngineGauge[]
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
  }

  remove(id: string): void {
    for (const series of this.#series.get(id) ?? [])
      for (const { family } of this.#gauges) family.remove(...series)
    this.#series.delete(id)
  }
}
