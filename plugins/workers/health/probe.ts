/** The probe port: health routes on a plain listener of their own. */
import type { Host } from '#kernel'
import type { HealthConfig } from './config.ts'
import { aliveRoute, readinessRoute } from './routes.ts'

export async function openProbe(host: Host, at: NonNullable<HealthConfig['probe']>): Promise<void> {
  const { port } = await host.listen({
    ...at,
    portSetting: 'plugins.health.probe.port',
    routes: [aliveRoute('/health'), aliveRoute('/liveness'), readinessRoute(host)],
  })
  host.log.info({ host: at.host, port }, 'probes are answered here')
}
