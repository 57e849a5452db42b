/** What the routing threads get of an engine's report. Pure. */
import type { EngineLoad, RankLoad } from '#kernel'
import type { OverloadLimits } from './config.ts'

const UNTOLD = -1

/**
 * The reports of one rank of an engine whose ranks are a worker each. Where the engine tells its ranks not apart, each
 * has its share.
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
  return count === UNTOLD ? UNTOLD : Math.round(count / size)
}

/** @param reports at least one @param atMs `Date.now()` at the answer */
export function toEngineLoad(reports: readonly RankLoad[], atMs: number): EngineLoad {
  return {
    queuedTokens: sumOf(toldOf(reports, 'queuedTokens')),
    usedTokens: sumOf(toldOf(reports, 'usedTokens')),
    kvUsage: meanUsage(reports),
    tokensPerSecond: reports.reduce((sum, report) => sum + report.tokensPerSecond, 0),
    usedTokensByRank: byRank(reports),
    atMs,
  }
}

/** What is not told is no sign of overload. */
export function isOverloaded(reports: readonly RankLoad[], limits: OverloadLimits): boolean {
  const waiting = sumOf(toldOf(reports, 'waitingRequests'))
  return waiting >= limits.waitingRequests || meanUsage(reports) >= limits.kvUsage
}

/** -1 when nobody told it. */
function meanUsage(reports: readonly RankLoad[]): number {
  const usages = toldOf(reports, 'kvUsage')
  return usages.length === 0 ? UNTOLD : sumOf(usages) / usages.length
}

function toldOf(reports: readonly RankLoad[], key: Exclude<keyof RankLoad, 'pair'>): number[] {
  return reports.map((report) => report[key]).filter((value) => value !== UNTOLD)
}

/** -1 when nobody told anything. */
function sumOf(values: readonly number[]): number {
  return values.length === 0 ? UNTOLD : values.reduce((sum, value) => sum + value, 0)
}

/** Empty unless every rank tells its tokens; a rank that is not listed has -1. */
function byRank(reports: readonly RankLoad[]): readonly number[] {
  if (reports.some((report) => report.usedTokens === UNTOLD)) return []
  const size = reports.reduce((most, { rank }) => Math.max(most, rank + 1), 0)
  const used = new Array<number>(size).fill(UNTOLD)
  for (const report of reports) used[report.rank] = report.usedTokens
  return used
}
