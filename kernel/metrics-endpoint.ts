/** The metrics listener: all threads' values as Prometheus text, on a port of its own. @source routes facts 6.7 */
import type { KernelConfig } from './config/kernel-config.ts'
import type { Logger } from './contracts/log.ts'
import { adminErrorFormat } from './errors/error-formats.ts'
import { openListener } from './http/listener.ts'
import type { HttpServer } from './http/server.ts'
import type { MetricsSnapshot } from './observe/metrics-snapshot.ts'
import { PROMETHEUS_CONTENT_TYPE, renderPrometheus } from './observe/prometheus.ts'

export interface MetricsEndpoint {
  readonly server: HttpServer
  readonly url: string
}

/** @param collect the snapshots of every thread */
export async function openMetricsEndpoint(
  config: KernelConfig,
  log: Logger,
  collect: () => Promise<MetricsSnapshot[]>,
): Promise<MetricsEndpoint> {
  const { host, port } = config.metrics
  const opened = await openListener(
    {
      host,
      port,
      isAlone: true,
      routes: [
        {
          method: 'GET',
          path: '/metrics',
          access: 'public',
          errors: adminErrorFormat,
          handler: async (ctx) =>
            ctx.send(200, PROMETHEUS_CONTENT_TYPE, await renderPrometheus(await collect())),
          docs: { summary: 'Prometheus metrics', tag: 'metrics', responses: {} },
        },
      ],
    },
    config.http,
    log,
  )
  return { server: opened.server, url: `http://${host}:${opened.port}/metrics` }
}
