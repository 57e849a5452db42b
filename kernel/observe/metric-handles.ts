/** @hot Handles of metrics: plain numbers of the declaring thread, one addition per event. */
import type { CounterHandle, GaugeHandle, HistogramHandle } from '../contracts/metric.ts'

export class Counter implements CounterHandle {
  value = 0

  inc(by = 1): void {
    this.value += by
  }
}

export class Gauge implements GaugeHandle {
  value = 0
}

export class Histogram implements HistogramHandle {
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
