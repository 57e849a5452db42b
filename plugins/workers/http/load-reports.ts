/** Reads the load of an engine, from its load route or from the gauges of its metrics page. */
import type { EngineReport, RankLoad, RuntimeType, WorkerReply, WorkerTarget } from '#kernel'
import { type DisaggregationReport, type PrometheusFamily, parsePrometheusText, toPairLoad } from '#shared'
import { type CallWorker, isGoodStatus } from './control-call.ts'

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
 * @source routing facts 1.9; routes facts 2, 17.2
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

/** Values of all series of a metric, by the metric's name. */
export type SeriesValues = ReadonlyMap<string, readonly number[]>

/** NaN and infinities are left out. */
export function toSeriesValues(families: readonly PrometheusFamily[]): SeriesValues {
  const byName = new Map<string, number[]>()
  for (const sample of families.flatMap((family) => family.samples)) {
    const value = Number(sample.value)
    if (!Number.isFinite(value)) continue
    const values = byName.get(sample.name)
    if (values === undefined) byName.set(sample.name, [value])
    else values.push(value)
  }
  return byName
}

/** Sum over the series of the first of these metrics that there is; 0 when there is none. */
export function sumOf(series: SeriesValues, names: readonly string[]): number {
  return (valuesOf(series, names) ?? []).reduce((sum, value) => sum + value, 0)
}

/** Mean over the series of the first of these metrics that there is; null when there is none. */
export function meanOf(series: SeriesValues, names: readonly string[]): number | null {
  const values = valuesOf(series, names)
  return values === undefined ? null : sumOf(series, names) / values.length
}

function valuesOf(series: SeriesValues, names: readonly string[]): readonly number[] | undefined {
  return names.map((name) => series.get(name)).find((values) => values !== undefined)
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

/** @source routes facts 17.2, routing facts 1.9 */
const LOADS_PATH = '/v1/loads?include=core,disagg,queues,memory'
const CALL_TIMEOUT_MS = 5_000
const MAX_REPLY_BYTES = 8_388_608

/** A source that an engine lacks is tried again after this, each time after twice as long. */
const FIRST_BACK_OFF_MS = 30_000
const MAX_BACK_OFF_MS = 900_000

type Source = 'loads' | 'metrics'

/** In the order in which they are asked. @source routing facts 1.9 */
const SOURCES_OF: ReadonlyMap<string, readonly Source[]> = new Map([
  ['sglang', ['loads', 'metrics']],
  ['vllm', ['metrics', 'loads']],
  ['trtllm', ['loads']],
  ['mlx', ['loads']],
  ['llamacpp', ['metrics']],
  ['unspecified', ['loads']],
  // Cloud services have no reports.
  ['external', []],
])

const PATH_OF: Readonly<Record<Source, string>> = { loads: LOADS_PATH, metrics: '/metrics' }

function ask(call: CallWorker, target: WorkerTarget, source: Source): Promise<WorkerReply> {
  const path = PATH_OF[source]
  return call(target, { method: 'GET', path, timeoutMs: CALL_TIMEOUT_MS, maxBodyBytes: MAX_REPLY_BYTES })
}

interface Absence {
  readonly untilMs: number
  readonly backOffMs: number
}

/** The sources of one engine, with a memory of those that it lacks. */
export class LoadSources {
  readonly #call: CallWorker
  readonly #absences = new Map<Source, Absence>()

  constructor(call: CallWorker) {
    this.#call = call
  }

  /**
   * Asks the first source that answers.
   * @param nowMs of a clock that only goes forward
   * @returns null when none does; never throws
   */
  async read(target: WorkerTarget, runtime: RuntimeType, nowMs: number): Promise<EngineReport | null> {
    for (const source of SOURCES_OF.get(runtime) ?? []) {
      if (nowMs < (this.#absences.get(source)?.untilMs ?? 0)) continue
      let reply: WorkerReply
      try {
        reply = await ask(this.#call, target, source)
      } catch {
        // The engine is not to be reached: another route would not be either.
        return null
      }
      const report = isGoodStatus(reply.status) ? readReply(source, reply) : null
      if (report !== null) {
        this.#absences.delete(source)
        return report
      }
      if (reply.status < 500) this.#noteAbsence(source, nowMs)
    }
    return null
  }

  #noteAbsence(source: Source, nowMs: number): void {
    const last = this.#absences.get(source)
    const backOffMs = last === undefined ? FIRST_BACK_OFF_MS : Math.min(MAX_BACK_OFF_MS, last.backOffMs * 2)
    this.#absences.set(source, { untilMs: nowMs + backOffMs, backOffMs })
  }
}

/** Null when it is no report. */
function readReply(source: Source, reply: WorkerReply): EngineReport | null {
  try {
    if (source === 'loads') return readReport(reply.json())
    const load = readGauges(reply.body.toString())
    return load === null ? null : { timestamp: null, ranks: [load] }
  } catch {
    return null
  }
}
