/** How busy a rank is, in the words of the engines whose reports are alike. @source grpc facts 3.6 */
import type { RankLoad } from '#kernel'

interface WireLoad {
  readonly dpRank: number
  readonly numRunningReqs: number
  readonly numWaitingReqs: number
  readonly numUsedTokens: number
  readonly numWaitingUncachedTokens: number
  readonly tokenUsage: number
  readonly genThroughput: number
}

export function toRankLoad(load: WireLoad): RankLoad {
  return {
    rank: load.dpRank,
    queuedTokens: load.numWaitingUncachedTokens,
    usedTokens: load.numUsedTokens,
    kvUsage: Math.min(1, Math.max(0, load.tokenUsage)),
    tokensPerSecond: Math.max(0, load.genThroughput),
    runningRequests: load.numRunningReqs,
    waitingRequests: load.numWaitingReqs,
  }
}
