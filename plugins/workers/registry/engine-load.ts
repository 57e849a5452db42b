/** Engine load reports: their form in the worker table, overload detection, and the weir_engine_… metrics. */
import type { EngineLoad, GaugeHandle, MetricFamily, Metrics, RankLoad, WorkerEntry } from '#kernel'
import type { OverloadLimits } from './config.ts'
import type { EngineView } from './wire.ts'

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
    usedTokens: usedTokens(reports),
    kvUsage: meanUsage(reports),
    tokensPerSecond: reports.reduce((sum, report) => sum + report.tokensPerSecond, 0),
    atMs,
  }
}

/** What the record of a worker shows of a report; null for what the engine does not report. */
export function toEngineView(reports: readonly RankLoad[]): EngineView {
  const sum = (key: 'runningRequests' | 'waitingRequests') => orNull(sumOf(knownValues(reports, key)))
  const hitRates = knownValues(reports, 'cacheHitRate')
  return {
    running: sum('runningRequests'),
    waiting: sum('waitingRequests'),
    kv_usage: orNull(meanUsage(reports)),
    cache_hit_rate: hitRates.length === 0 ? null : sumOf(hitRates) / hitRates.length,
  }
}

const orNull = (value: number) => (value === UNKNOWN ? null : value)

/** Sum over all ranks; -1 if none reports it. */
export function usedTokens(reports: readonly RankLoad[]): number {
  return sumOf(knownValues(reports, 'usedTokens'))
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
  return reports.map((report) => report[key]).filter((value) => value >= 0)
}

/** -1 for an empty list. */
function sumOf(values: readonly number[]): number {
  return values.length === 0 ? UNKNOWN : values.reduce((sum, value) => sum + value, 0)
}

/** Values of the labels: worker, model or role, rank. */
type Series = readonly [worker: string, group: string, rank: string]

interface EngineGauge {
  readonly family: MetricFamily<GaugeHandle>
  /** Gauges of prefill and decode engines have the role as a label instead of the model. */
  readonly isOfPair: boolean
  /** UNKNOWN for values that the engine does not report, which have no series. */
  readonly read: (report: RankLoad) => number
}

/** The weir_engine_… gauges; a series exists as long as its worker reports. */
export class EngineMetrics {
  readonly #gauges: EngineGauge[] = []
  /** Series that the last report set, by worker id. */
  readonly #set = new Map<string, readonly (readonly [EngineGauge, Series])[]>()

  constructor(metrics: Metrics) {
    const add = (group: 'model' | 'role', name: string, help: string, read: EngineGauge['read']) => {
      const family = metrics.gauge({
        name: `weir_engine_${name}`,
        help,
        labels: ['worker', group, 'dp_rank'],
      })
      this.#gauges.push({ family, isOfPair: group === 'role', read })
    }
    add('model', 'running_requests', 'Requests running in the engine.', (load) => load.runningRequests)
    add('model', 'waiting_requests', 'Requests in the queue of the engine.', (load) => load.waitingRequests)
    add('model', 'token_usage', 'Share of the KV cache in use, 0 to 1.', (load) => load.kvUsage)
    add('model', 'gen_throughput', 'Tokens generated per second.', (load) => load.tokensPerSecond)
    const hitRateHelp = 'Share of prompt tokens found in the prefix cache, 0 to 1.'
    add('model', 'cache_hit_rate', hitRateHelp, (load) => load.cacheHitRate)
    const latencyHelp = 'Time to transfer KV blocks, milliseconds.'
    add('role', 'pd_kv_transfer_latency_ms', latencyHelp, ({ pair }) => pair?.transferMs ?? UNKNOWN)
    const speedHelp = 'Speed of KV block transfers, gigabytes per second.'
    add('role', 'pd_kv_transfer_speed_gb_s', speedHelp, ({ pair }) => pair?.transferRate ?? UNKNOWN)
    for (const role of ['prefill', 'decode'] as const)
      add('role', `pd_${role}_queue_reqs`, `Requests in the queues of a ${role} engine.`, ({ pair }) =>
        pair?.role === role ? pair.queuedRequests : UNKNOWN,
      )
  }

  set(entry: WorkerEntry, reports: readonly RankLoad[]): void {
    const model = entry.models[0]?.id ?? 'unknown'
    this.remove(entry.id)
    const set = this.#gauges.flatMap((gauge) =>
      reports.flatMap((report): (readonly [EngineGauge, Series])[] => {
        const value = gauge.read(report)
        if (value === UNKNOWN) return []
        const group = gauge.isOfPair ? (report.pair?.role ?? '') : model
        const series: Series = [entry.url, group, String(report.rank)]
        gauge.family.labels(...series).value = value
        return [[gauge, series]]
      }),
    )
    this.#set.set(entry.id, set)
  }

  remove(id: string): void {
    for (const [{ family }, series] of this.#set.get(id) ?? []) family.remove(...series)
    this.#set.delete(id)
  }
}
