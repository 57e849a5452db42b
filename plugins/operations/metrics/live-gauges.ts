/** Gauges of things that come and go, such as workers: their series are exactly those that were added at the last scrape. */
import { type CounterHandle, type GaugeHandle, labelKey, type MetricFamily, type Metrics } from '#kernel'

export class LiveGauges {
  readonly #metrics: Metrics
  readonly #gauges: LiveGauge[] = []

  constructor(metrics: Metrics) {
    this.#metrics = metrics
  }

  /** @param kind `counter` for a count that is kept elsewhere */
  declare(
    name: string,
    help: string,
    labels: readonly string[],
    kind: 'gauge' | 'counter' = 'gauge',
  ): LiveGauge {
    const gauge = new LiveGauge(this.#metrics[kind]({ name, help, labels }))
    this.#gauges.push(gauge)
    return gauge
  }

  /** @param addAll adds all series, at each scrape */
  onCollect(addAll: () => void): void {
    this.#metrics.onCollect(() => {
      for (const gauge of this.#gauges) gauge.begin()
      addAll()
      for (const gauge of this.#gauges) gauge.end()
    })
  }
}

class LiveGauge {
  readonly #family: MetricFamily<GaugeHandle | CounterHandle>
  /** Series of the previous pass; those not added again are removed. */
  #stale = new Map<string, string[]>()
  #live = new Map<string, string[]>()

  constructor(family: MetricFamily<GaugeHandle | CounterHandle>) {
    this.#family = family
  }

  begin(): void {
    this.#stale = this.#live
    this.#live = new Map()
  }

  add(by: number, ...labels: string[]): void {
    const key = labelKey(labels)
    const gauge = this.#family.labels(...labels)
    if (!this.#live.has(key)) gauge.value = 0
    gauge.value += by
    this.#live.set(key, labels)
    this.#stale.delete(key)
  }

  end(): void {
    for (const labels of this.#stale.values()) this.#family.remove(...labels)
  }
}
