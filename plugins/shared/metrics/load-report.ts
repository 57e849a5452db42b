/** Reads the load reports of engines, as their `/v1/loads` route sends them. */
import type { EngineReport, PairLoad, RankLoad } from '#kernel'

/** Value of what an engine does not report. */
const UNKNOWN = -1
/** Ranks of one engine: bounds the workers that it adds, and the cost of an invalid report. */
export const MAX_RANKS = 1_024
const MAX_TIMESTAMP_LENGTH = 64

type Members = Readonly<Record<string, unknown>>

/** @returns null if it lists no rank */
export function readLoadReport(answer: unknown): EngineReport | null {
  const { loads, timestamp } = (answer ?? {}) as { loads?: unknown; timestamp?: unknown }
  if (!Array.isArray(loads) || loads.length === 0) return null
  const isTime = typeof timestamp === 'string' && timestamp.length <= MAX_TIMESTAMP_LENGTH
  return {
    timestamp: isTime ? timestamp : null,
    ranks: loads.slice(0, MAX_RANKS).map((entry, place) => toRankLoad(entry ?? {}, place)),
  }
}

function toRankLoad(entry: Members, place: number): RankLoad {
  const rank = entry.dp_rank
  const pair = toPairLoad(entry.disaggregation as Members | null | undefined)
  return {
    rank: Number.isInteger(rank) && Number(rank) >= 0 && Number(rank) < MAX_RANKS ? Number(rank) : place,
    runningRequests: knownNumber(entry.num_running_reqs),
    waitingRequests: knownNumber(entry.num_waiting_reqs),
    maxRequests: knownNumber(entry.max_running_requests),
    queuedTokens: knownNumber(entry.num_waiting_uncached_tokens),
    usedTokens: knownNumber(entry.num_used_tokens),
    maxTokens: knownNumber(entry.max_total_num_tokens),
    kvUsage: usageOf(entry),
    tokensPerSecond: Math.max(0, knownNumber(entry.gen_throughput)),
    cacheHitRate: knownNumber(entry.cache_hit_rate),
    utilization: knownNumber(entry.utilization),
    ...(pair !== undefined && { pair }),
  }
}

/** The reported ratio, or the ratio of the reported counts. */
function usageOf(entry: Members): number {
  const ratio = knownNumber(entry.token_usage)
  if (ratio !== UNKNOWN) return Math.min(1, ratio)
  const [used, capacity] = [knownNumber(entry.num_used_tokens), knownNumber(entry.max_total_num_tokens)]
  return used === UNKNOWN || capacity <= 0 ? UNKNOWN : Math.min(1, used / capacity)
}

function knownNumber(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : UNKNOWN
}

/** @returns undefined if the engine is not part of a pair or does not report it */
function toPairLoad(report: Members | null | undefined): PairLoad | undefined {
  const role = report?.mode
  if (report === null || report === undefined || (role !== 'prefill' && role !== 'decode')) return undefined
  const queues =
    role === 'prefill'
      ? [report.prefill_prealloc_queue_reqs, report.prefill_inflight_queue_reqs]
      : [
          report.decode_prealloc_queue_reqs,
          report.decode_transfer_queue_reqs,
          report.decode_retracted_queue_reqs,
        ]
  const reported = queues.map(knownNumber).filter((count) => count !== UNKNOWN)
  return {
    role,
    queuedRequests: reported.length === 0 ? UNKNOWN : reported.reduce((sum, count) => sum + count, 0),
    transferMs: knownNumber(report.kv_transfer_latency_ms),
    transferRate: knownNumber(report.kv_transfer_speed_gb_s),
  }
}
