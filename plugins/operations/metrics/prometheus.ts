/** The metrics listener: Prometheus text over all threads, on a separate port. prom-client is loaded on the first scrape. */
import type { Metric } from 'prom-client'
import {
  adminErrorFormat,
  type FamilySnapshot,
  type HistogramFamily,
  type Host,
  type MetricsSnapshot,
} from '#kernel'
import type { MetricsConfig } from './config.ts'

export const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** A sample in prom-client's JSON format. */
interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** @param snapshot values of all threads, added up */
export async function renderPrometheus(snapshot: MetricsSnapshot): Promise<string> {
  const { Registry } = await import('prom-client')
  const registry = new Registry()
  for (const family of snapshot) {
    const json = { name: family.name, help: family.help, type: family.type, values: samplesOf(family) }
    // The registry only uses `name` and `get`; its type requires prom-client's own metric classes.
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

/** Call on control only. @throws BootError if the port cannot be opened */
export async function openEndpoint(host: Host, { host: address, port }: MetricsConfig): Promise<void> {
  await host.listen({
    host: address,
    port,
    portSetting: '--metrics-port',
    isAlone: true,
    routes: [
      {
        method: 'GET',
        path: '/metrics',
        access: 'public',
        errors: adminErrorFormat,
        handler: async (ctx) =>
          ctx.send(200, PROMETHEUS_CONTENT_TYPE, await renderPrometheus(await host.readMetrics())),
        docs: { summary: 'Prometheus metrics', tag: 'metrics', responses: {} },
      },
    ],
  })
}
