/**
 * Declaration of metrics. Handles are plain objects of the declaring thread, so counting is one addition; the values of all
 * threads are merged at a scrape.
 */
export interface CounterHandle {
  value: number
  inc(by?: number): void
}

/** A value that may rise and fall; threads are summed. */
export interface GaugeHandle {
  value: number
}

/** A distribution of values in buckets. */
export interface HistogramHandle {
  /** @param value in the unit of the metric's name, such as seconds */
  observe(value: number): void
}

/** A metric with labels; `labels()` finds or creates the child. Keep the child on hot paths. */
export interface MetricFamily<Handle> {
  /** Values in the order of the declared label names. */
  labels(...values: string[]): Handle
  /** Removes the child from the metrics. */
  remove(...values: string[]): void
}

export interface MetricOptions {
  /** Full name with unit, such as `weir_http_request_duration_seconds`. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

/** Declares the metrics of a plugin. */
export interface Metrics {
  counter(options: MetricOptions): MetricFamily<CounterHandle>
  /** Gauges of several threads are summed. */
  gauge(options: MetricOptions): MetricFamily<GaugeHandle>
  /** @param buckets upper bounds, ascending; default: `DURATION_BUCKETS` of `kernel/observe/metrics.ts`, in seconds */
  histogram(options: MetricOptions & { buckets?: readonly number[] }): MetricFamily<HistogramHandle>
  /**
   * Called before each scrape on this thread, to set gauges from live state.
   * @param families that it sets, if it is cheap enough to be called several times a second too, for a read of these families
   */
  onCollect(refresh: () => void, families?: readonly string[]): void
}

// Metrics as plain data, which survives `structuredClone`.

export type MetricType = 'counter' | 'gauge' | 'histogram'

/** One child of a counter or gauge. */
export interface ValueSeries {
  /** In the order of the family's label names. */
  readonly labels: readonly string[]
  readonly value: number
}

/** One child of a histogram. */
export interface HistogramSeries {
  /** In the order of the family's label names. */
  readonly labels: readonly string[]
  /** Per bucket, not cumulative; one more than there are bounds. */
  readonly buckets: Float64Array
  readonly sum: number
  readonly count: number
}

interface FamilyHead {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
}

export interface ValueFamily extends FamilyHead {
  readonly type: 'counter' | 'gauge'
  readonly series: readonly ValueSeries[]
}

export interface HistogramFamily extends FamilyHead {
  readonly type: 'histogram'
  /** Upper bounds, inclusive, ascending, without infinity. */
  readonly bounds: readonly number[]
  readonly series: readonly HistogramSeries[]
}

export type FamilySnapshot = ValueFamily | HistogramFamily

/** All families of a thread, or the sums of several threads. */
export type MetricsSnapshot = readonly FamilySnapshot[]
