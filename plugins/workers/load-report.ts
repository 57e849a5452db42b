/** The load of one worker as it tells it: its own report, or gauges of its metrics page. */
import { parsePrometheusText, type Static, Type } from '#kernel'
import { meanOf, type SeriesValues, sumOf, toSeriesValues } from './series-values.ts'

/** @source API spec 2.12 */
export const RankLoadSchema = Type.Object({
  dp_rank: Type.Integer(),
  num_running_reqs: Type.Integer(),
  num_waiting_reqs: Type.Integer(),
  num_total_reqs: Type.Integer(),
  num_used_tokens: Type.Integer(),
  max_total_num_tokens: Type.Integer(),
  max_running_requests: Type.Integer(),
  token_usage: Type.Number({ description: '-1 when the worker has no such gauge.' }),
  gen_throughput: Type.Number(),
  cache_hit_rate: Type.Number(),
  utilization: Type.Number(),
})
export type RankLoad = Static<typeof RankLoadSchema>

export const LoadDetailsSchema = Type.Object({
  timestamp: Type.String({ description: 'ISO 8601.' }),
  dp_rank_count: Type.Integer(),
  loads: Type.Array(RankLoadSchema),
})
export type LoadDetails = Static<typeof LoadDetailsSchema>

/** More than any engine has. */
const MAX_RANKS = 1_024

const NO_LOAD: RankLoad = Object.freeze({
  dp_rank: 0,
  num_running_reqs: 0,
  num_waiting_reqs: 0,
  num_total_reqs: 0,
  num_used_tokens: 0,
  max_total_num_tokens: 0,
  max_running_requests: 0,
  token_usage: 0,
  gen_throughput: 0,
  cache_hit_rate: 0,
  utilization: 0,
})
const RANK_KEYS = Object.keys(NO_LOAD) as (keyof RankLoad)[]

/**
 * Reads a `/v1/loads` answer; numbers that are missing are 0.
 * @returns null when it is none, or lists no rank
 * @source routes facts 17.2
 */
export function readLoads(answer: unknown, nowIso: string): LoadDetails | null {
  const { loads, timestamp, dp_rank_count } = (answer ?? {}) as Partial<Record<keyof LoadDetails, unknown>>
  if (!Array.isArray(loads) || loads.length === 0) return null
  return {
    timestamp: typeof timestamp === 'string' ? timestamp : nowIso,
    dp_rank_count: Number.isInteger(dp_rank_count) ? (dp_rank_count as number) : loads.length,
    loads: loads.slice(0, MAX_RANKS).map(toRankLoad),
  }
}

function toRankLoad(entry: Readonly<Record<string, unknown>> | null): RankLoad {
  const load = { ...NO_LOAD }
  for (const key of RANK_KEYS) {
    const value = entry?.[key]
    if (typeof value === 'number' && Number.isFinite(value)) load[key] = value
  }
  return load
}

/** Gauge names by engine; the first that a page has is used. @source routing facts 1.9 */
const GAUGES = [
  {
    running: ['vllm:num_requests_running'],
    waiting: ['vllm:num_requests_waiting'],
    usage: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    hitRate: ['vllm:gpu_prefix_cache_hit_rate'],
    throughput: [],
  },
  {
    running: ['sglang:num_running_reqs', 'sglang_num_running_reqs'],
    waiting: ['sglang:num_queue_reqs', 'sglang_num_queue_reqs'],
    usage: ['sglang:token_usage', 'sglang_token_usage'],
    hitRate: ['sglang:cache_hit_rate', 'sglang_cache_hit_rate'],
    throughput: ['sglang:gen_throughput', 'sglang_gen_throughput'],
  },
] as const

/**
 * Reads a metrics page: counts are summed over its series, ratios averaged. It knows no token counts.
 * @returns null when it has none of the engines' gauges
 * @throws PrometheusSyntaxError when the page is not of the format
 */
export function readGauges(page: string, nowIso: string): LoadDetails | null {
  const series = toSeriesValues(parsePrometheusText(page))
  const names = GAUGES.find(({ running, usage }) => [...running, ...usage].some((name) => series.has(name)))
  if (names === undefined) return null
  const running = sumOf(series, names.running)
  const waiting = sumOf(series, names.waiting)
  const load: RankLoad = {
    ...NO_LOAD,
    num_running_reqs: Math.round(running),
    num_waiting_reqs: Math.round(waiting),
    num_total_reqs: Math.round(running + waiting),
    token_usage: usageOf(series, names.usage),
    cache_hit_rate: meanOf(series, names.hitRate) ?? 0,
    gen_throughput: sumOf(series, names.throughput),
  }
  return { timestamp: nowIso, dp_rank_count: 1, loads: [load] }
}

/** No gauge is not the same as an empty cache. */
function usageOf(series: SeriesValues, names: readonly string[]): number {
  return meanOf(series, names) ?? -1
}
