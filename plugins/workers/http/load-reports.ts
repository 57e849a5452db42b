/** Reads the load of an engine, from its load route or from the gauges of its metrics page. */
import {
  type EngineReport,
  isObject,
  type RankLoad,
  type RuntimeType,
  type WorkerResponse,
  type WorkerTarget,
} from '#kernel'
import { isSuccess, type PrometheusFamily, parsePrometheusText, readLoadReport } from '#shared'
import type { CallWorker } from './control-call.ts'
import type { LoadSource } from './engines/engine.ts'
import { ENGINES, engineOf } from './engines/index.ts'

/** Value of what an engine does not report. */
const UNKNOWN = -1

const UNKNOWN_LOAD: RankLoad = Object.freeze({
  rank: 0,
  runningRequests: UNKNOWN,
  waitingRequests: UNKNOWN,
  maxRequests: UNKNOWN,
  queuedTokens: UNKNOWN,
  usedTokens: UNKNOWN,
  maxTokens: UNKNOWN,
  kvUsage: UNKNOWN,
  tokensPerSecond: 0,
  cacheHitRate: UNKNOWN,
  utilization: UNKNOWN,
})

/** Values of all series, by metric name. */
type SeriesValues = ReadonlyMap<string, readonly number[]>

/** Drops NaN and infinities. */
function toSeriesValues(families: readonly PrometheusFamily[]): SeriesValues {
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

/** Sum over the series of the first metric that exists; 0 if none does. */
function sumOf(series: SeriesValues, names: readonly string[]): number {
  return (valuesOf(series, names) ?? []).reduce((sum, value) => sum + value, 0)
}

/** Mean over the series of the first metric that exists; null if none does. */
function meanOf(series: SeriesValues, names: readonly string[]): number | null {
  const values = valuesOf(series, names)
  return values === undefined ? null : sumOf(series, names) / values.length
}

function valuesOf(series: SeriesValues, names: readonly string[]): readonly number[] | undefined {
  return names.map((name) => series.get(name)).find((values) => values !== undefined)
}

const GAUGES = ENGINES.flatMap(({ gauges }) => gauges ?? [])

/**
 * Reads a metrics page: sums counts over all series and averages ratios. Token counts stay unknown.
 * @returns null if it has no gauge of a supported engine
 * @throws PrometheusSyntaxError if the page is invalid
 */
export function readGauges(page: string): RankLoad | null {
  const series = toSeriesValues(parsePrometheusText(page))
  const names = GAUGES.find(({ running, usage }) => [...running, ...usage].some((name) => series.has(name)))
  if (names === undefined) return null
  return {
    ...UNKNOWN_LOAD,
    runningRequests: Math.round(sumOf(series, names.running)),
    waitingRequests: Math.round(sumOf(series, names.waiting)),
    kvUsage: ratio(meanOf(series, names.usage)),
    cacheHitRate: ratio(meanOf(series, names.hitRate)),
    tokensPerSecond: Math.max(0, sumOf(series, names.throughput)),
  }
}

/** A missing gauge must not read as an empty cache. */
function ratio(mean: number | null): number {
  return mean === null ? UNKNOWN : Math.min(1, mean)
}

const LIMITS = { timeoutMs: 5_000, maxBodyBytes: 8_388_608 }

/** A missing source is tried again after this time, which doubles each time. */
const FIRST_BACK_OFF_MS = 30_000
const MAX_BACK_OFF_MS = 900_000

const PATH_OF: Readonly<Record<LoadSource, string>> = {
  loads: '/v1/loads?include=core,disagg,queues,memory',
  metrics: '/metrics',
  slots: '/slots',
}

interface Absence {
  readonly untilMs: number
  readonly backOffMs: number
}

const NOT_IMPLEMENTED = 501
const FOR_EVER: Absence = { untilMs: Number.POSITIVE_INFINITY, backOffMs: MAX_BACK_OFF_MS }

/** Load sources of one engine; remembers missing ones, so that they are not queried each time. */
export class LoadSources {
  readonly #call: CallWorker
  readonly #absences = new Map<LoadSource, Absence>()

  constructor(call: CallWorker) {
    this.#call = call
  }

  /**
   * Reads the first source that answers.
   * @param nowMs `performance.now()`
   * @returns null if none does; never throws
   */
  async read(target: WorkerTarget, runtime: RuntimeType, nowMs: number): Promise<EngineReport | null> {
    for (const source of engineOf(runtime).loadSources) {
      if (nowMs < (this.#absences.get(source)?.untilMs ?? 0)) continue
      let response: WorkerResponse
      try {
        response = await this.#call(target, { method: 'GET', path: PATH_OF[source], ...LIMITS })
      } catch {
        // The engine is unreachable, also by another route.
        return null
      }
      const report = isSuccess(response.status) ? readResponse(source, response) : null
      if (report !== null) {
        this.#absences.delete(source)
        return report
      }
      if (response.status < 500) this.#noteAbsence(source, nowMs)
      // Until the engine is restarted with the source.
      else if (response.status === NOT_IMPLEMENTED) this.#absences.set(source, FOR_EVER)
    }
    return null
  }

  #noteAbsence(source: LoadSource, nowMs: number): void {
    const last = this.#absences.get(source)
    const backOffMs = last === undefined ? FIRST_BACK_OFF_MS : Math.min(MAX_BACK_OFF_MS, last.backOffMs * 2)
    this.#absences.set(source, { untilMs: nowMs + backOffMs, backOffMs })
  }
}

/** Slots of llama.cpp; null for anything else. */
function readSlots(slots: unknown): RankLoad | null {
  if (!Array.isArray(slots) || slots.length === 0) return null
  const running = slots.filter((slot) => isObject(slot) && slot.is_processing === true)
  return { ...UNKNOWN_LOAD, runningRequests: running.length, maxRequests: slots.length }
}

/** Null if the response is not a load report. */
function readResponse(source: LoadSource, response: WorkerResponse): EngineReport | null {
  try {
    if (source === 'loads') return readLoadReport(response.json())
    const load = source === 'slots' ? readSlots(response.json()) : readGauges(response.body.toString())
    return load === null ? null : { timestamp: null, ranks: [load] }
  } catch {
    return null
  }
}
