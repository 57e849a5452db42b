/** Metrics as plain data, which survives `structuredClone`. */

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
