/** Renders a snapshot as the Prometheus text exposition. The only user of prom-client, loaded on the first scrape. */
import type { Metric } from 'prom-client'
import type { FamilySnapshot, HistogramFamily, MetricsSnapshot } from '#kernel'

export const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** A sample as prom-client's JSON format has it. */
interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** The text of one scrape. @param snapshot of all threads, added up */
export async function renderPrometheus(snapshot: MetricsSnapshot): Promise<string> {
  const { Registry } = await import('prom-client')
  const registry = new Registry()
  for (const family of snapshot) {
    const json = { name: family.name, help: family.help, type: family.type, values: samplesOf(family) }
    // The registry reads nothing of a metric but its name and `get`; its type names the classes that count by themselves.
    registry.registerMetric({ name: family.name, get: () => json } as unknown as Metric)
  }
  return registry.metrics()
}

function samplesOf(family: FamilySnapshot): Sample[] {
  if (family.type === 'histogram') return histogramSamples(family)
  return family.series.map((series) => ({
    labels: toLabels(family.labelNames, series.labels),
    value: series.value,
  }))
}

function histogramSamples(family: HistogramFamily): Sample[] {
  const samples: Sample[] = []
  for (const series of family.series) {
    const labels = toLabels(family.labelNames, series.labels)
    let cumulative = 0
    series.buckets.forEach((count, index) => {
      cumulative += count
      const le = index < family.bounds.length ? String(family.bounds[index]) : '+Inf'
      samples.push({ metricName: `${family.name}_bucket`, labels: { ...labels, le }, value: cumulative })
    })
    samples.push({ metricName: `${family.name}_sum`, labels, value: series.sum })
    samples.push({ metricName: `${family.name}_count`, labels, value: series.count })
  }
  return samples
}

function toLabels(names: readonly string[], values: readonly string[]): Record<string, string> {
  const labels: Record<string, string> = {}
  names.forEach((name, index) => {
    labels[name] = values[index]
  })
  return labels
}
