/**
 * Metrics as plugins declare them. Handles are plain objects on the declaring thread: counting is one addition,
 * and the Prometheus text is made of all threads' values only when somebody scrapes.
 */
export interface CounterHandle {
  value: number
  inc(by?: number): void
}

export interface GaugeHandle {
  value: number
}

export interface HistogramHandle {
  /** @param value in the unit of the metric's name, such as seconds */
  observe(value: number): void
}

/** A metric with labels; `labels()` finds or makes the child. Keep the child on hot paths. */
export interface MetricFamily<Handle> {
  /** Values in the order of the declared label names. */
  labels(...values: string[]): Handle
  /** Drops the child, so that what left shows no more. */
  remove(...values: string[]): void
}

export interface MetricOptions {
  /** Full name with unit, such as `weir_http_request_duration_seconds`. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

export interface Metrics {
  counter(options: MetricOptions): MetricFamily<CounterHandle>
  /** Gauges of several threads add up. */
  gauge(options: MetricOptions): MetricFamily<GaugeHandle>
  /** @param buckets upper bounds, ascending; in seconds; default: the duration buckets */
  histogram(options: MetricOptions & { buckets?: readonly number[] }): MetricFamily<HistogramHandle>
  /** Called before each scrape on this thread, to set gauges from live state. */
  onCollect(refresh: () => void): void
}
