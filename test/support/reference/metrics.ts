/** The metrics reference, generated from the declared metrics. */
import type { MetricsSnapshot } from '#kernel'
import { code, toPage, toTable } from './tables.ts'

export function metricsPage(families: MetricsSnapshot): string {
  const rows = families.map(({ name, type, labelNames, help }) => [
    code(name),
    type,
    labelNames.map(code).join(', '),
    help,
  ])
  rows.sort(([a], [b]) => (a < b ? -1 : 1))
  return toPage(
    'Metrics reference',
    'Metrics in Prometheus format, by default at `http://127.0.0.1:29000/metrics` (plugin `metrics`).',
    toTable(['metric', 'type', 'labels', 'meaning'], rows),
  )
}
