/** Metrics of the configuration and the certificates that are in effect; declared on control only. */
import type { Metrics } from '../contracts/metric.ts'

/** @returns sets them after a load of the configuration; `expiresAtMs` by setting, milliseconds since the epoch */
export function declareControlMetrics(metrics: Metrics) {
  const successful = metrics
    .gauge({
      name: 'weir_config_last_reload_successful',
      help: '1 if the last load of the configuration succeeded, 0 if a reload was rejected.',
    })
    .labels()
  const successAtSecs = metrics
    .gauge({
      name: 'weir_config_last_reload_success_timestamp_seconds',
      help: 'Unix time of the last successful load of the configuration; the start counts.',
    })
    .labels()
  const expiresAtSecs = metrics.gauge({
    name: 'weir_tls_certificate_expiry_timestamp_seconds',
    help: 'Unix time at which the certificate in use expires, by the setting of its file.',
    labels: ['setting'],
  })
  return (isSuccessful: boolean, expiresAtMs: ReadonlyMap<string, number>): void => {
    successful.value = isSuccessful ? 1 : 0
    if (isSuccessful) successAtSecs.value = Date.now() / 1000
    for (const [setting, atMs] of expiresAtMs) expiresAtSecs.labels(setting).value = atMs / 1000
  }
}
