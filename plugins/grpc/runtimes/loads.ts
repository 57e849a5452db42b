/** How busy a rank is, in the words of the engines whose reports are alike. @source grpc facts 3.6 */
import type { EngineReport, RankLoad } from '#contracts'

interface WireLoad {
  readonly dpRank: number
  readonly numRunningReqs: number
  readonly numWaitingReqs: number
  readonly numUsedTokens: number
  readonly numWaitingUncachedTokens: number
  readonly tokenUsage: number
  readonly genThroughput: number
  readonly maxRunningRequests: number
  readonly maxTotalNumTokens: number
  readonly cacheHitRate: number
  readonly utilization: number
}

function toRankLoad(load: WireLoad): RankLoad {
  return {
    rank: load.dpRank,
    queuedTokens: load.numWaitingUncachedTokens,
    usedTokens: load.numUsedTokens,
    kvUsage: Math.min(1, Math.max(0, load.tokenUsage)),
    tokensPerSecond: Math.max(0, load.genThroughput),
    runningRequests: load.numRunningReqs,
    waitingRequests: load.numWaitingReqs,
    maxRequests: load.maxRunningRequests,
    maxTokens: load.maxTotalNumTokens,
    cacheHitRate: load.cacheHitRate,
    utilization: load.utilization,
  }
}

export function toReport(answer: {
  readonly timestamp: string
  readonly loads: readonly WireLoad[]
}): EngineReport {
  return { timestamp: answer.timestamp || null, ranks: answer.loads.map(toRankLoad) }
}
