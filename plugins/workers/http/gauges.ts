/** The load of one worker as the gauges of its metrics page tell it. */
import type { RankLoad } from '#kernel'
import { parsePrometheusText } from '#shared'
import { UNTOLD, UNTOLD_LOAD } from './engine-report.ts'
import { meanOf, sumOf, toSeriesValues } from './series-values.ts'

/** Gauge names by engine; the first that a page has is used. */
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
  {
    running: ['llamacpp:requests_processing'],
    waiting: ['llamacpp:requests_deferred'],
    usage: ['llamacpp:kv_cache_usage_ratio'],
    hitRate: [],
    throughput: ['llamacpp:predicted_tokens_seconds'],
  },
] as const

/**
 * Reads a metrics page: counts are summed over its series, ratios averaged. It knows no token counts.
 * @returns null when it has none of the engines' gauges
 * @throws PrometheusSyntaxError when the page is not of the format
 */
export function readGauges(page: string): RankLoad | null {
  const series = toSeriesValues(parsePrometheusText(page))
  const names = GAUGES.find(({ running, usage }) => [...running, ...usage].some((name) => series.has(name)))
  if (names === undefined) return null
  return {
    ...UNTOLD_LOAD,
    runningRequests: Math.round(sumOf(series, names.running)),
    waitingRequests: Math.round(sumOf(series, names.waiting)),
    kvUsage: ratio(meanOf(series, names.usage)),
    cacheHitRate: ratio(meanOf(series, names.hitRate)),
    tokensPerSecond: Math.max(0, sumOf(series, names.throughput)),
  }
}

/** No gauge is not the same as an empty cache. */
function ratio(mean: number | null): number {
  return mean === null ? UNTOLD : Math.min(1, mean)
}
