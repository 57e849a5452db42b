/** Reads what an engine reports about its load, rank by rank. Pure. */
import type { EngineReport, RankLoad } from '#kernel'
import { type DisaggregationReport, toPairLoad } from '#shared'

export const UNTOLD = -1
/** More than any engine has: a wrong answer must not cost more than a right one. */
const MAX_RANKS = 1_024
const MAX_TIMESTAMP_LENGTH = 64

export const UNTOLD_LOAD: RankLoad = Object.freeze({
  rank: 0,
  runningRequests: UNTOLD,
  waitingRequests: UNTOLD,
  maxRequests: UNTOLD,
  queuedTokens: UNTOLD,
  usedTokens: UNTOLD,
  maxTokens: UNTOLD,
  kvUsage: UNTOLD,
  tokensPerSecond: 0,
  cacheHitRate: UNTOLD,
  utilization: UNTOLD,
})

/**
 * Reads a `/v1/loads` answer.
 * @returns null when it lists no rank
 */
export function readReport(answer: unknown): EngineReport | null {
  const { loads, timestamp } = (answer ?? {}) as { loads?: unknown; timestamp?: unknown }
  if (!Array.isArray(loads) || loads.length === 0) return null
  const isTime = typeof timestamp === 'string' && timestamp.length <= MAX_TIMESTAMP_LENGTH
  return {
    timestamp: isTime ? timestamp : null,
    ranks: loads.slice(0, MAX_RANKS).map((entry, place) => toRankLoad(entry ?? {}, place)),
  }
}

function toRankLoad(entry: Readonly<Record<string, unknown>>, place: number): RankLoad {
  const rank = entry.dp_rank
  const pair = toPairLoad(entry.disaggregation as DisaggregationReport | null | undefined)
  return {
    rank: Number.isInteger(rank) && Number(rank) >= 0 && Number(rank) < MAX_RANKS ? Number(rank) : place,
    runningRequests: told(entry.num_running_reqs),
    waitingRequests: told(entry.num_waiting_reqs),
    maxRequests: told(entry.max_running_requests),
    queuedTokens: told(entry.num_waiting_uncached_tokens),
    usedTokens: told(entry.num_used_tokens),
    maxTokens: told(entry.max_total_num_tokens),
    kvUsage: usageOf(entry),
    tokensPerSecond: Math.max(0, told(entry.gen_throughput)),
    cacheHitRate: told(entry.cache_hit_rate),
    utilization: told(entry.utilization),
    ...(pair !== undefined && { pair }),
  }
}

/** The ratio itself, or what the counts make of it. */
function usageOf(entry: Readonly<Record<string, unknown>>): number {
  const ratio = told(entry.token_usage)
  if (ratio !== UNTOLD) return Math.min(1, ratio)
  const [used, capacity] = [told(entry.num_used_tokens), told(entry.max_total_num_tokens)]
  return used === UNTOLD || capacity <= 0 ? UNTOLD : Math.min(1, used / capacity)
}

function told(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : UNTOLD
}
