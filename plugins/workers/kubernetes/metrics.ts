/** What discovery did, in numbers. */
import type { Metrics } from '#kernel'
import type { ReconcileListener } from './reconcile.ts'

const SOURCE = 'kubernetes'

export function discoveryMetrics(metrics: Metrics): ReconcileListener & {
  synced(workers: number, seconds: number): void
} {
  const registrations = metrics.counter({
    name: 'weir_discovery_registrations_total',
    help: 'Workers handed to the registry.',
    labels: ['source', 'result'],
  })
  const deregistrations = metrics.counter({
    name: 'weir_discovery_deregistrations_total',
    help: 'Workers taken back from the registry.',
    labels: ['source', 'reason'],
  })
  const duration = metrics
    .histogram({
      name: 'weir_discovery_sync_duration_seconds',
      help: 'Time of one comparison of pods and workers.',
      labels: ['source'],
    })
    .labels(SOURCE)
  const discovered = metrics
    .gauge({
      name: 'weir_discovery_workers_discovered',
      help: 'Workers that discovery looks after.',
      labels: ['source'],
    })
    .labels(SOURCE)
  return {
    registered: (result) => registrations.labels(SOURCE, result).inc(),
    deregistered: (reason) => deregistrations.labels(SOURCE, reason).inc(),
    synced: (workers, seconds) => {
      discovered.value = workers
      duration.observe(seconds)
    },
  }
}
