/** Flags and variables of the metrics listener. */
import type { ConfigFlag } from '#kernel'

export const metricsFlags: readonly ConfigFlag[] = [
  {
    flag: 'metrics-port',
    env: 'WEIR_METRICS_PORT',
    path: ['plugins', 'metrics', 'port'],
    kind: 'integer',
    placeholder: 'port',
    help: 'port of the Prometheus listener; 0 takes any free one',
  },
]
