/** What a gateway did in one interval, and the point of the overview that samples of one or more gateways add up to. */

import { defineValidator, type MetricsSnapshot, type Static, Type, type ValueFamily } from '#kernel'
import type { Percentiles, Point } from './point.ts'

/** Histograms by member of a sample. */
const HISTOGRAMS = {
  ttft: 'weir_router_ttft_seconds',
  itl: 'weir_router_tpot_seconds',
  duration: 'weir_router_request_duration_seconds',
  added: 'weir_router_overhead_seconds',
} as const
const REQUESTS = 'weir_http_requests_total'
const RESPONSES = 'weir_http_responses_total'
const TOKENS = 'weir_router_tokens_total'
const QUEUES = ['weir_limits_queue_depth', 'weir_scheduler_queue_depth']

export const FAMILIES: readonly string[] = [
  ...Object.values(HISTOGRAMS),
  REQUESTS,
  RESPONSES,
  TOKENS,
  ...QUEUES,
]

/** Further causes are added up as `other`. */
const MAX_CAUSES = 20
const MAX_BUCKETS = 100

const Count = Type.Number({ minimum: 0 })
/** Per bucket, the last one above all bounds; null without an observation. */
const Buckets = Type.Union([Type.Array(Count, { maxItems: MAX_BUCKETS }), Type.Null()])

export const Sample = Type.Object({
  intervalMs: Type.Number({ exclusiveMinimum: 0 }),
  requests: Count,
  /** By cause. */
  errors: Type.Record(Type.String(), Count, { maxProperties: MAX_CAUSES + 1 }),
  inputTokens: Count,
  outputTokens: Count,
  ttft: Buckets,
  itl: Buckets,
  duration: Buckets,
  added: Buckets,
  inFlight: Count,
  queued: Count,
  ready: Count,
  total: Count,
})
/** Counts of one interval, and what was in flight at its end. */
export type Sample = Static<typeof Sample>
export const sampleValidator = defineValidator(Sample)

type HistogramName = keyof typeof HISTOGRAMS

/** Counters since the start. */
export interface Totals {
  readonly requests: number
  readonly errors: ReadonlyMap<string, number>
  readonly inputTokens: number
  readonly outputTokens: number
  readonly queued: number
  readonly histograms: Readonly<Record<HistogramName, Histogram>>
}

interface Histogram {
  /** Seconds. */
  readonly bounds: readonly number[]
  readonly buckets: readonly number[]
}

const EMPTY: Histogram = { bounds: [], buckets: [] }

/** @param isServing whether requests of the path count: those of clients, not those of operators and probes */
export function readTotals(snapshot: MetricsSnapshot, isServing: (path: string) => boolean): Totals {
  const byName = new Map(snapshot.map((family) => [family.name, family]))
  const valuesOf = (name: string) => (byName.get(name) as ValueFamily | undefined)?.series ?? []
  let [requests, inputTokens, outputTokens, queued] = [0, 0, 0, 0]
  for (const { labels, value } of valuesOf(REQUESTS)) if (isServing(labels[1])) requests += value
  const errors = new Map<string, number>()
  for (const { labels, value } of valuesOf(RESPONSES)) {
    const [path, status, code] = labels
    if (Number(status) < 400 || !isServing(path)) continue
    const cause = code === '' ? `status_${status}` : code
    errors.set(cause, (errors.get(cause) ?? 0) + value)
  }
  for (const { labels, value } of valuesOf(TOKENS)) {
    const type = labels.at(-1)
    if (type === 'input') inputTokens += value
    else if (type === 'output') outputTokens += value
  }
  for (const name of QUEUES) for (const { value } of valuesOf(name)) queued += value
  const histogramOf = (name: string): Histogram => {
    const family = byName.get(name)
    if (family?.type !== 'histogram') return EMPTY
    const buckets = new Array<number>(family.bounds.length + 1).fill(0)
    for (const series of family.series)
      for (let index = 0; index < buckets.length; index++) buckets[index] += series.buckets[index]
    return { bounds: family.bounds, buckets }
  }
  const { ttft, itl, duration, added } = HISTOGRAMS
  const histograms = {
    ttft: histogramOf(ttft),
    itl: histogramOf(itl),
    duration: histogramOf(duration),
    added: histogramOf(added),
  }
  return { requests, errors, inputTokens, outputTokens, queued, histograms }
}

/** What happened between two readings. */
export function difference(
  before: Totals,
  after: Totals,
  workers: { readonly inFlight: number; readonly ready: number; readonly total: number },
  intervalMs: number,
): Sample {
  const buckets = (name: HistogramName) => {
    const [old, next] = [before.histograms[name].buckets, after.histograms[name].buckets]
    const counts = next.map((count, index) => Math.max(0, count - (old[index] ?? 0)))
    return counts.some((count) => count > 0) ? counts : null
  }
  const errors = [...after.errors]
    .map(([cause, count]): [string, number] => [cause, Math.max(0, count - (before.errors.get(cause) ?? 0))])
    .filter(([, count]) => count > 0)
  return {
    intervalMs,
    requests: Math.max(0, after.requests - before.requests),
    errors: largest(errors),
    inputTokens: Math.max(0, after.inputTokens - before.inputTokens),
    outputTokens: Math.max(0, after.outputTokens - before.outputTokens),
    ttft: buckets('ttft'),
    itl: buckets('itl'),
    duration: buckets('duration'),
    added: buckets('added'),
    ...workers,
    queued: after.queued,
  }
}

/** Adds up consecutive samples of one gateway. @param samples at least one, oldest first */
export function join(samples: readonly Sample[]): Sample {
  const last = samples[samples.length - 1]
  const sum = (count: (sample: Sample) => number) => samples.reduce((all, sample) => all + count(sample), 0)
  return {
    ...last,
    intervalMs: sum(({ intervalMs }) => intervalMs),
    requests: sum(({ requests }) => requests),
    errors: addErrors(samples, () => 1),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    ttft: addBuckets(samples, 'ttft'),
    itl: addBuckets(samples, 'itl'),
    duration: addBuckets(samples, 'duration'),
    added: addBuckets(samples, 'added'),
  }
}

function addErrors(samples: readonly Sample[], weight: (sample: Sample) => number): Record<string, number> {
  const counts = new Map<string, number>()
  for (const sample of samples)
    for (const [cause, count] of Object.entries(sample.errors))
      counts.set(cause, (counts.get(cause) ?? 0) + count * weight(sample))
  return largest([...counts])
}

/** As own members, whatever the names. */
function largest(errors: readonly [string, number][]): Record<string, number> {
  const sorted = errors.toSorted(([, a], [, b]) => b - a)
  const rest = sorted.splice(MAX_CAUSES).reduce((sum, [, count]) => sum + count, 0)
  return Object.fromEntries(rest > 0 ? [...sorted, ['other', rest]] : sorted)
}

function addBuckets(samples: readonly Sample[], name: HistogramName): number[] | null {
  let sum: number[] | null = null
  for (const sample of samples) {
    const buckets = sample[name]
    if (buckets === null) continue
    const added: number[] = sum ?? new Array(buckets.length).fill(0)
    // A gateway of another version may have other bounds, which cannot be added.
    if (added.length === buckets.length) for (const [at, count] of buckets.entries()) added[at] += count
    sum = added
  }
  return sum
}

/**
 * @param samples one of each gateway, this one's first: workers that gateways share are those of the first
 * @param bounds of the histograms, in seconds
 */
export function toPoint(
  atMs: number,
  samples: readonly Sample[],
  bounds: Readonly<Record<HistogramName, readonly number[]>>,
): Point {
  const [own] = samples
  const sum = (count: (sample: Sample) => number) => samples.reduce((all, sample) => all + count(sample), 0)
  const rate = (count: (sample: Sample) => number) =>
    rounded(sum((sample) => (count(sample) * 1_000) / sample.intervalMs))
  const percentiles = (name: HistogramName) => percentilesOf(addBuckets(samples, name), bounds[name])
  const errors = addErrors(samples, ({ intervalMs }) => 1_000 / intervalMs)
  return {
    at_ms: atMs,
    requests_per_s: rate(({ requests }) => requests),
    errors_per_s: Object.fromEntries(Object.entries(errors).map(([cause, count]) => [cause, rounded(count)])),
    ttft_ms: percentiles('ttft'),
    itl_ms: percentiles('itl'),
    duration_ms: percentiles('duration'),
    added_ms: percentiles('added'),
    in_flight: sum(({ inFlight }) => inFlight),
    queued: sum(({ queued }) => queued),
    input_tokens_per_s: rate(({ inputTokens }) => inputTokens),
    output_tokens_per_s: rate(({ outputTokens }) => outputTokens),
    workers: { ready: own.ready, total: own.total },
    gateways: samples.length,
  }
}

function percentilesOf(buckets: readonly number[] | null, bounds: readonly number[]): Percentiles | null {
  if (buckets === null || buckets.length !== bounds.length + 1) return null
  const total = buckets.reduce((sum, count) => sum + count, 0)
  const at = (share: number) => rounded(quantile(buckets, bounds, total * share) * 1_000)
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** Linear within a bucket, as Prometheus does; above all bounds, the last bound. */
function quantile(buckets: readonly number[], bounds: readonly number[], rank: number): number {
  let below = 0
  for (const [index, bound] of bounds.entries()) {
    const count = buckets[index]
    if (count > 0 && below + count >= rank) {
      const lower = index === 0 ? 0 : bounds[index - 1]
      return lower + ((bound - lower) * (rank - below)) / count
    }
    below += count
  }
  return bounds[bounds.length - 1]
}

const rounded = (value: number) => Math.round(value * 1_000) / 1_000
