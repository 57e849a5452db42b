/** The metrics listener: all threads' values as Prometheus text, on a port of its own. */
import { adminErrorFormat, type Host } from '#kernel'
import type { MetricsConfig } from './config.ts'
import { PROMETHEUS_CONTENT_TYPE, renderPrometheus } from './prometheus.ts'

/** On control alone: it speaks for all threads. @throws BootError when the port cannot be had */
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
