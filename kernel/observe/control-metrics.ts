/** Metrics of the configuration and the certificates that are in effect; declared on control only. */
import type { GaugeHandle, MetricFamily, Metrics } from '../contracts/metric.ts'

export class ControlMetrics {
  readonly #successful: GaugeHandle
  readonly #successAtSecs: GaugeHandle
  readonly #expiresAtSecs: MetricFamily<GaugeHandle>

  constructor(metrics: Metrics) {
    this.#successful = metrics
      .gauge({
        name: 'weir_config_last_reload_successful',
        help: '1 if the last load of the configuration succeeded, 0 if a reload was rejected.',
      })
      .labels()
    this.#successAtSecs = metrics
      .gauge({
        name: 'weir_config_last_reload_success_timestamp_seconds',
        help: 'Unix time of the last successful load of the configuration; the start counts.',
      })
      .labels()
    this.#expiresAtSecs = metrics.gauge({
      name: 'weir_tls_certificate_expiry_timestamp_seconds',
      help: 'Unix time at which the certificate in use expires, by the setting of its file.',
      labels: ['setting'],
    })
  }

  /** @param isSuccessful whether the configuration was applied */
  reloaded(isSuccessful: boolean): void {
    this.#successful.value = isSuccessful ? 1 : 0
    if (isSuccessful) this.#successAtSecs.value = Date.now() / 1000
  }

  /** @param expiresAtMs by setting, milliseconds since the epoch */
  useCertificates(expiresAtMs: ReadonlyMap<string, number>): void {
    for (const [setting, atMs] of expiresAtMs) this.#expiresAtSecs.labels(setting).value = atMs / 1000
  }
}
