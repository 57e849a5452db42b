/** The health plugin: liveness, readiness, a generating probe, and the merged metrics of all workers. */

import { definePlugin } from '#kernel'
import { hostProblem } from '#shared'
import { healthConfig } from './config.ts'
import { healthFlags } from './flags.ts'
import {
  engineMetricsRoute,
  healthGenerateRoute,
  livenessRoute,
  openProbe,
  readinessRoute,
} from './routes.ts'

export default definePlugin({
  manifest: {
    name: 'health',
    version: '0.1.0',
    description: 'Liveness, readiness and merged worker metrics.',
    config: healthConfig,
    flags: healthFlags,
  },
  *check({ probe }, kernel) {
    if (probe === undefined) return
    const wrong = hostProblem(probe.host)
    if (wrong !== null) yield { path: ['probe', 'host'], text: wrong }
    if (probe.port !== 0 && probe.port === kernel.port)
      yield { path: ['probe', 'port'], text: `must differ from kernel.port (got ${probe.port})` }
  },
  register(host, config) {
    host.route(livenessRoute('/health'))
    host.route(livenessRoute('/liveness'))
    host.route(readinessRoute(host))
    host.route(healthGenerateRoute(host, config))
    host.route(engineMetricsRoute(host, config))
    const { probe } = config
    // One listener for the process, on control, which knows the workers and the drain.
    if (probe === undefined || !host.isControl) return
    return { start: () => openProbe(host, probe) }
  },
})
