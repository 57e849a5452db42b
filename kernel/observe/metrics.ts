/** Metrics of one thread: declares families, counts, and takes snapshots for a scrape. Handles are plain numbers. @hot */
import type {
  CounterHandle,
  FamilySnapshot,
  GaugeHandle,
  HistogramHandle,
  MetricFamily,
  MetricOptions,
  Metrics,
  MetricsSnapshot,
  MetricType,
} from '../contracts/metric.ts'
import { labelKey } from './metrics-snapshot.ts'

/** Upper bounds of durations, in seconds. */
export const DURATION_BUCKETS: readonly number[] = Object.freeze([
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 45, 60, 90, 120, 180, 240, 300, 480,
  900, 1200, 1800, 2700, 3600, 5400, 7200,
])

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/

interface Child<Handle> {
  readonly values: readonly string[]
  readonly handle: Handle
}

/** One declared metric of a thread. */
class Family<Handle> implements MetricFamily<Handle> {
  readonly name: string
  readonly help: string
  readonly type: MetricType
  readonly labelNames: readonly string[]
  readonly bounds: readonly number[]
  readonly children = new Map<string, Child<Handle>>()
  readonly #make: () => Handle

  constructor(type: MetricType, options: MetricOptions, bounds: readonly number[], make: () => Handle) {
    this.type = type
    this.name = options.name
    this.help = options.help
    this.labelNames = options.labels ?? []
    this.bounds = bounds
    this.#make = make
    // A metric without labels has one child, which is exported from the start as zero.
    if (this.labelNames.length === 0) this.labels()
  }

  labels(...values: string[]): Handle {
    const key = labelKey(values)
    const known = this.children.get(key)
    if (known !== undefined) return known.handle
    if (values.length !== this.labelNames.length) {
      throw new Error(`metric ${this.name} has ${this.labelNames.length} labels, got ${values.length} values`)
    }
    const child = { values, handle: this.#make() }
    this.children.set(key, child)
    return child.handle
  }

  remove(...values: string[]): void {
    this.children.delete(labelKey(values))
  }
}

type AnyFamily = Family<Counter> | Family<Gauge> | Family<Histogram>

export class ThreadMetrics implements Metrics {
  /** In order of declaration. */
  readonly #families = new Map<string, AnyFamily>()
  readonly #refreshers: { readonly refresh: () => void; readonly families: readonly string[] }[] = []
  readonly #onRefreshError: (error: unknown) => void

  /** @param onRefreshError called with the exception of an `onCollect` callback; the snapshot continues */
  constructor(onRefreshError: (error: unknown) => void = () => {}) {
    this.#onRefreshError = onRefreshError
  }

  counter(options: MetricOptions): MetricFamily<CounterHandle> {
    return this.#declare(new Family('counter', options, [], () => new Counter()))
  }

  gauge(options: MetricOptions): MetricFamily<GaugeHandle> {
    return this.#declare(new Family('gauge', options, [], () => new Gauge()))
  }

  histogram(options: MetricOptions & { buckets?: readonly number[] }): MetricFamily<HistogramHandle> {
    const bounds = checkedBounds(options.name, options.buckets ?? DURATION_BUCKETS)
    const shared = Float64Array.from(bounds)
    return this.#declare(new Family('histogram', options, bounds, () => new Histogram(shared)))
  }

  onCollect(refresh: () => void, families: readonly string[] = []): void {
    this.#refreshers.push({ refresh, families })
  }

  /**
   * Refreshes the gauges of live state, then copies every value.
   * @param names only these families, and gauges that declare them in `onCollect`; null for all
   */
  snapshot(names: readonly string[] | null = null): MetricsSnapshot {
    for (const { refresh, families } of this.#refreshers) {
      if (names !== null && !families.some((name) => names.includes(name))) continue
      try {
        refresh()
      } catch (error) {
        this.#onRefreshError(error)
      }
    }
    const families = names === null ? this.#families.values() : this.#named(names)
    return Array.from(families, toSnapshot)
  }

  *#named(names: readonly string[]): Generator<AnyFamily> {
    for (const name of names) {
      const family = this.#families.get(name)
      if (family !== undefined) yield family
    }
  }

  /** @returns the family that is declared already, if there is one */
  #declare<F extends AnyFamily>(family: F): F {
    const known = this.#families.get(family.name)
    if (known === undefined) {
      checkNames(family)
      this.#families.set(family.name, family)
      return family
    }
    if (isSame(known, family)) return known as F
    throw new Error(
      `metric ${family.name} is declared twice with another type, other labels or other buckets`,
    )
  }
}

function isSame(a: AnyFamily, b: AnyFamily): boolean {
  return (
    a.type === b.type &&
    labelKey(a.labelNames) === labelKey(b.labelNames) &&
    a.bounds.join() === b.bounds.join()
  )
}

function checkNames({ name, type, labelNames }: AnyFamily): void {
  if (!METRIC_NAME.test(name)) throw new Error(`'${name}' is not a metric name`)
  for (const label of labelNames) {
    if (!LABEL_NAME.test(label)) throw new Error(`'${label}' of metric ${name} is not a label name`)
    if (type === 'histogram' && label === 'le') throw new Error(`histogram ${name} may not have a label 'le'`)
  }
}

function checkedBounds(name: string, bounds: readonly number[]): readonly number[] {
  const isAscending = bounds.every((bound, index) => index === 0 || bound > bounds[index - 1])
  if (bounds.length === 0 || !isAscending || !bounds.every(Number.isFinite)) {
    throw new Error(`buckets of metric ${name} must be finite and ascending`)
  }
  return bounds
}

function toSnapshot(family: AnyFamily): FamilySnapshot {
  const { name, help, labelNames } = family
  if (isHistogram(family)) {
    const series = [...family.children.values()].map(({ values, handle }) => ({
      labels: values,
      buckets: handle.buckets.slice(),
      sum: handle.sum,
      count: handle.count,
    }))
    return { name, help, labelNames, type: 'histogram', bounds: family.bounds, series }
  }
  const series: { labels: readonly string[]; value: number }[] = []
  for (const { values, handle } of family.children.values())
    series.push({ labels: values, value: handle.value })
  return { name, help, labelNames, type: family.type === 'gauge' ? 'gauge' : 'counter', series }
}

function isHistogram(family: AnyFamily): family is Family<Histogram> {
  return family.type === 'histogram'
}

class Counter implements CounterHandle {
  value = 0

  inc(by = 1): void {
    this.value += by
  }
}

class Gauge implements GaugeHandle {
  value = 0
}

class Histogram implements HistogramHandle {
  /** Observations per bucket, not cumulative; the last bucket is above all bounds. */
  readonly buckets: Float64Array
  sum = 0
  count = 0
  readonly #bounds: Float64Array

  /** @param bounds upper bounds, inclusive, ascending, without infinity */
  constructor(bounds: Float64Array) {
    this.#bounds = bounds
    this.buckets = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let low = 0
    let high = bounds.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (value <= bounds[middle]) high = middle
      else low = middle + 1
    }
    this.buckets[low] += 1
    this.sum += value
    this.count += 1
  }
}
