/** How busy a rank is, in the words of the engines whose reports are alike. */
import type { EngineReport, RankLoad } from '#kernel'
import { toPairLoad } from '#shared'

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
  readonly disaggregation?: WireDisaggregation
}

interface WireDisaggregation {
  readonly mode: string
  readonly prefillPreallocQueueReqs: number
  readonly prefillInflightQueueReqs: number
  readonly decodePreallocQueueReqs: number
  readonly decodeTransferQueueReqs: number
  readonly decodeRetractedQueueReqs: number
  readonly kvTransferSpeedGbS: number
  readonly kvTransferLatencyMs: number
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
    ...pairOf(load.disaggregation),
  }
}

function pairOf(told: WireDisaggregation | undefined): Pick<RankLoad, 'pair'> {
  const pair = toPairLoad(
    told && {
      mode: told.mode,
      prefill_prealloc_queue_reqs: told.prefillPreallocQueueReqs,
      prefill_inflight_queue_reqs: told.prefillInflightQueueReqs,
      decode_prealloc_queue_reqs: told.decodePreallocQueueReqs,
      decode_transfer_queue_reqs: told.decodeTransferQueueReqs,
      decode_retracted_queue_reqs: told.decodeRetractedQueueReqs,
      kv_transfer_speed_gb_s: told.kvTransferSpeedGbS,
      kv_transfer_latency_ms: told.kvTransferLatencyMs,
    },
  )
  return pair === undefined ? {} : { pair }
}

export function toReport(answer: {
  readonly timestamp: string
  readonly loads: readonly WireLoad[]
}): EngineReport {
  return { timestamp: answer.timestamp || null, ranks: answer.loads.map(toRankLoad) }
}
