/** What an engine tells about its load, rank by rank, and what the routing threads get of it. Pure. */
import type { EngineLoad } from '#kernel'
import type { LoadDetails } from './load-report.ts'

/** Load of one data-parallel rank; -1 stands for what the engine does not tell. */
export interface RankReport {
  /** 0-based. */
  readonly rank: number
  readonly runningRequests: number
  readonly waitingRequests: number
  /** Prompt tokens that wait for prefill. */
  readonly queuedTokens: number
  /** Tokens in KV memory. */
  readonly usedTokens: number
  /** KV memory in use, 0 to 1. */
  readonly kvUsage: number
  readonly tokensPerSecond: number
  /** 0 to 1. */
  readonly cacheHitRate: number
}

const UNTOLD = -1
/** More than any engine has: a wrong answer must not cost more than a right one. */
const MAX_RANKS = 1_024

/**
 * Reads a `/v1/loads` answer.
 * @returns null when it lists no rank
 * @source routing facts 1.9; routes facts 2, 17.2
 */
export function readRankReports(answer: unknown): readonly RankReport[] | null {
  const loads = (answer as { loads?: unknown } | null)?.loads
  if (!Array.isArray(loads) || loads.length === 0) return null
  return loads.slice(0, MAX_RANKS).map((entry, place) => toRankReport(entry ?? {}, place))
}

function toRankReport(entry: Readonly<Record<string, unknown>>, place: number): RankReport {
  const rank = entry.dp_rank
  return {
    rank: Number.isInteger(rank) && Number(rank) >= 0 && Number(rank) < MAX_RANKS ? Number(rank) : place,
    runningRequests: told(entry.num_running_reqs),
    waitingRequests: told(entry.num_waiting_reqs),
    queuedTokens: told(entry.num_waiting_uncached_tokens),
    usedTokens: told(entry.num_used_tokens),
    kvUsage: usageOf(entry),
    tokensPerSecond: Math.max(0, told(entry.gen_throughput)),
    cacheHitRate: told(entry.cache_hit_rate),
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

/** Gauges of a metrics page tell ratios and requests, but no tokens. */
export function toRankReports(gauges: LoadDetails): readonly RankReport[] {
  return gauges.loads.map((load) => ({
    rank: load.dp_rank,
    runningRequests: load.num_running_reqs,
    waitingRequests: load.num_waiting_reqs,
    queuedTokens: UNTOLD,
    usedTokens: UNTOLD,
    kvUsage: Math.min(1, load.token_usage),
    tokensPerSecond: Math.max(0, load.gen_throughput),
    cacheHitRate: load.cache_hit_rate,
  }))
}

/**
 * The reports of one rank of an engine whose ranks are a worker each. Where the engine tells its ranks not apart, each
 * has its share.
 */
export function reportsOfRank(
  reports: readonly RankReport[],
  rank: number,
  size: number,
): readonly RankReport[] {
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
  return count === UNTOLD ? UNTOLD : Math.round(count / size)
}

/** @param reports at least one @param atMs `Date.now()` at the answer */
export function toEngineLoad(reports: readonly RankReport[], atMs: number): EngineLoad {
  const usages = toldOf(reports, 'kvUsage')
  return {
    queuedTokens: sumOf(toldOf(reports, 'queuedTokens')),
    usedTokens: sumOf(toldOf(reports, 'usedTokens')),
    kvUsage: usages.length === 0 ? UNTOLD : sumOf(usages) / usages.length,
    tokensPerSecond: reports.reduce((sum, report) => sum + report.tokensPerSecond, 0),
    usedTokensByRank: byRank(reports),
    atMs,
  }
}

function toldOf(reports: readonly RankReport[], key: keyof RankReport): number[] {
  return reports.map((report) => report[key]).filter((value) => value !== UNTOLD)
}

/** -1 when nobody told anything. */
function sumOf(values: readonly number[]): number {
  return values.length === 0 ? UNTOLD : values.reduce((sum, value) => sum + value, 0)
}

/** Empty unless every rank tells its tokens; a rank that is not listed has -1. */
function byRank(reports: readonly RankReport[]): readonly number[] {
  if (reports.some((report) => report.usedTokens === UNTOLD)) return []
  const size = reports.reduce((most, { rank }) => Math.max(most, rank + 1), 0)
  const used = new Array<number>(size).fill(UNTOLD)
  for (const report of reports) used[report.rank] = report.usedTokens
  return used
}
