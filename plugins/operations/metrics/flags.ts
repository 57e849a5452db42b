/** Command-line flags and environment variables of the metrics plugin. */
import type { ConfigFlag } from '#kernel'

export const metricsFlags: readonly ConfigFlag[] = [
  {
    flag: 'metrics-port',
    env: 'WEIR_METRICS_PORT',
    path: ['plugins', 'metrics', 'port'],
    kind: 'integer',
    placeholder: 'port',
    help: 'port of the Prometheus listener; 0 selects a free port',
  },
  {
    env: 'WEIR_METRICS_HOST',
    path: ['plugins', 'metrics', 'host'],
    kind: 'text',
    help: 'address of the Prometheus listener',
    enablesNothing: true,
  },
]
