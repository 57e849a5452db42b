/** Environment variables of the health plugin, which container images set. */
import type { ConfigFlag } from '#kernel'

export const healthFlags: readonly ConfigFlag[] = [
  {
    env: 'WEIR_PROBE_HOST',
    path: ['plugins', 'health', 'probe', 'host'],
    kind: 'text',
    help: 'address of the probe port',
    enablesNothing: true,
  },
  {
    env: 'WEIR_PROBE_PORT',
    path: ['plugins', 'health', 'probe', 'port'],
    kind: 'integer',
    help: 'port of /health, /liveness and /readiness without TLS',
    enablesNothing: true,
  },
]
