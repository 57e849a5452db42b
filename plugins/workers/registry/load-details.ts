/** What GET /get_loads shows of an engine's report. */
import type { RankLoad } from '#kernel'
import { type Static, Type } from '#kernel'

const RankDetailsSchema = Type.Object({
  dp_rank: Type.Integer(),
  num_running_reqs: Type.Integer(),
  num_waiting_reqs: Type.Integer(),
  num_total_reqs: Type.Integer(),
  num_used_tokens: Type.Integer(),
  max_total_num_tokens: Type.Integer(),
  max_running_requests: Type.Integer(),
  token_usage: Type.Number({ description: '-1 when the worker tells neither tokens nor their share.' }),
  gen_throughput: Type.Number(),
  cache_hit_rate: Type.Number(),
  utilization: Type.Number(),
})

export const LoadDetailsSchema = Type.Object({
  timestamp: Type.String({ description: 'ISO 8601.' }),
  dp_rank_count: Type.Integer(),
  loads: Type.Array(RankDetailsSchema),
})

/** Numbers that the engine does not tell are 0. */
export function toLoadDetails(
  ranks: readonly RankLoad[],
  timestamp: string,
): Static<typeof LoadDetailsSchema> {
  return { timestamp, dp_rank_count: ranks.length, loads: ranks.map(toRankDetails) }
}

function toRankDetails(load: RankLoad): Static<typeof RankDetailsSchema> {
  const [running, waiting] = [orZero(load.runningRequests), orZero(load.waitingRequests)]
  return {
    dp_rank: load.rank,
    num_running_reqs: running,
    num_waiting_reqs: waiting,
    num_total_reqs: running + waiting,
    num_used_tokens: orZero(load.usedTokens),
    max_total_num_tokens: orZero(load.maxTokens),
    max_running_requests: orZero(load.maxRequests),
    // No gauge is not the same as an empty cache.
    token_usage: load.usedTokens < 0 ? load.kvUsage : orZero(load.kvUsage),
    gen_throughput: load.tokensPerSecond,
    cache_hit_rate: orZero(load.cacheHitRate),
    utilization: orZero(load.utilization),
  }
}

function orZero(value: number): number {
  return Math.max(0, value)
}

/** Over all ranks; -1 when none tells. */
export function usedTokens(ranks: readonly RankLoad[]): number {
  const told = ranks.map((load) => load.usedTokens).filter((tokens) => tokens >= 0)
  return told.length === 0 ? -1 : told.reduce((sum, tokens) => sum + tokens, 0)
}
