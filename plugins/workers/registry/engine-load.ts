/** Engine load reports: their form in the worker table, overload detection, and the weir_engine_… metrics. */
import type { EngineLoad, GaugeHandle, MetricFamily, Metrics, PairLoad, RankLoad, WorkerEntry } from '#kernel'
import type { OverloadLimits } from './config.ts'

/** Value of what an engine does not report. */
const UNKNOWN = -1

/**
 * Reports of one rank of an engine whose ranks are separate workers. If the engine reports only totals, each rank gets
 * an equal share.
 */
export function reportsOfRank(reports: readonly RankLoad[], rank: number, size: number): readonly RankLoad[] {
  const own = reports.filter((report) => report.rank === rank)
  if (own.length > 0) return own
  return reports.map((report) => ({
    ...report,
    rank,
    runningRequests: share(report.runningRequests, size),
    waitingRequests: share(report.waitingRequests, size),
    queuedTokens: share(report.queuedTokens, size),
    usedTokens: share(report.usedTokens, size),
    tokensPerSecond: report.tokensPerSecond / size,
  }))
}

function share(count: number, size: number): number {
  return count === UNKNOWN ? UNKNOWN : Math.round(count / size)
}

/** @param reports at least one @param atMs `Date.now()` when the report arrived */
export function toEngineLoad(reports: readonly RankLoad[], atMs: number): EngineLoad {
  return {
    queuedTokens: sumOf(knownValues(reports, 'queuedTokens')),
    usedTokens: sumOf(knownValues(reports, 'usedTokens')),
    kvUsage: meanUsage(reports),
    tokensPerSecond: reports.reduce((sum, report) => sum + report.tokensPerSecond, 0),
    usedTokensByRank: byRank(reports),
    atMs,
  }
}

/** Values that the engine does not report do not count as overload. */
export function isOverloaded(reports: readonly RankLoad[], limits: OverloadLimits): boolean {
  const waiting = sumOf(knownValues(reports, 'waitingRequests'))
  return waiting >= limits.waitingRequests || meanUsage(reports) >= limits.kvUsage
}

/** -1 if no rank reports it. */
function meanUsage(reports: readonly RankLoad[]): number {
  const usages = knownValues(reports, 'kvUsage')
  return usages.length === 0 ? UNKNOWN : sumOf(usages) / usages.length
}

function knownValues(reports: readonly RankLoad[], key: Exclude<keyof RankLoad, 'pair'>): number[] {
  return reports.map((report) => report[key]).filter((value) => value !== UNKNOWN)
}

/** -1 for an empty list. */
function sumOf(values: readonly number[]): number {
  return values.length === 0 ? UNKNOWN : values.reduce((sum, value) => sum + value, 0)
}

/** Empty unless every rank reports its tokens; a rank that is not listed has -1. */
function byRank(reports: readonly RankLoad[]): readonly number[] {
  if (reports.some((report) => report.usedTokens === UNKNOWN)) return []
  const size = reports.reduce((most, { rank }) => Math.max(most, rank + 1), 0)
  const used = new Array<number>(size).fill(UNKNOWN)
  for (const report of reports) used[report.rank] = report.usedTokens
  return used
}

const LABELS = ['worker', 'model', 'dp_rank'] as const
const PAIR_LABELS = ['worker', 'role', 'dp_rank'] as const
interface EngineGauge {
  readonly family: MetricFamily<GaugeHandle>
  readonly read: (report: RankLoad) => number
}

interface PairGauge {
  readonly family: MetricFamily<GaugeHandle>
  readonly read: (pair: PairLoad) => number
}

/** Label values. For prefill and decode engines, `model` is the role. */
type Series = readonly [worker: string, model: string, rank: string]

/** The weir_engine_… gauges; a series exists as long as its worker reports. */
export class EngineMetrics {
  readonly #gauges: readonly EngineGauge[]
  readonly #pairGauges: readonly PairGauge[]
  /** Series of prefill and decode workers, by worker id. */
  readonly #pairSeries = new Map<string, readonly Series[]>()
  /** Series that the last report set, by worker id. */
  readonly #series = new Map<string, readonly Series[]>()

  constructor(metrics: Metrics) {
    const gauge = (name: string, help: string, read: EngineGauge['read']): EngineGauge => ({
      family: metrics.gauge({ name: `weir_engine_${name}`, help, labels: LABELS }),
      read,
    })
    this.#gauges = [
      gauge('running_requests', 'Requests running in the engine.', (report) => report.runningRequests),
      gauge('waiting_requests', 'Requests in the queue of the engine.', (report) => report.waitingRequests),
      gauge('token_usage', 'Share of the KV cache in use, 0 to 1.', (report) => report.kvUsage),
      gauge('gen_throughput', 'Tokens generated per second.', (report) => report.tokensPerSecond),
      gauge(
        'cache_hit_rate',
        'Share of prompt tokens found in the prefix cache, 0 to 1.',
        (report) => report.cacheHitRate,
      ),
    ]
    const pairGauge = (name: string, help: string, read: PairGauge['read']): PairGauge => ({
      family: metrics.gauge({ name: `weir_engine_pd_${name}`, help, labels: PAIR_LABELS }),
      read,
    })
    const queueOf = (role: PairLoad['role']) => (pair: PairLoad) =>
      pair.role === role ? pair.queuedRequests : UNKNOWN
    this.#pairGauges = [
      pairGauge(
        'kv_transfer_latency_ms',
        'Time to transfer KV blocks, milliseconds.',
        (pair) => pair.transferMs,
      ),
      pairGauge(
        'kv_transfer_speed_gb_s',
        'Speed of KV block transfers, gigabytes per second.',
        (pair) => pair.transferRate,
      ),
      pairGauge('prefill_queue_reqs', 'Requests in the queues of a prefill engine.', queueOf('prefill')),
      pairGauge('decode_queue_reqs', 'Requests in the queues of a decode engine.', queueOf('decode')),
    ]
  }

  /** Values that the engine does not report have no series. */
  set(entry: WorkerEntry, reports: readonly RankLoad[]): void {
    const model = entry.models[0]?.id ?? 'unknown'
    this.remove(entry.id)
    const series = reports.map((report): Series => [entry.url, model, String(report.rank)])
    this.#series.set(entry.id, series)
    for (const { family, read } of this.#gauges) {
      for (const [place, report] of reports.entries()) {
        const value = read(report)
        if (value !== UNKNOWN) family.labels(...series[place]).value = value
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
        if (value !== UNKNOWN) family.labels(...series).value = value
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
