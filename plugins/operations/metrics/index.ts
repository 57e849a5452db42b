/** The metrics plugin: Prometheus metrics of requests, calls, workers, breakers and the process. */
import { definePlugin, TrafficWatch } from '#kernel'
import { hostProblem } from '#shared'
import { metricsConfig } from './config.ts'
import { metricsFlags } from './flags.ts'
import { declareEventLoopMetrics, declareProcessMetrics, declareThreadMemory } from './process-metrics.ts'
import { openEndpoint } from './prometheus.ts'
import { TrafficMetrics } from './traffic-metrics.ts'

export default definePlugin({
  manifest: {
    name: 'metrics',
    version: '0.1.0',
    description: 'Prometheus metrics on a separate port.',
    provides: [TrafficWatch],
    config: metricsConfig,
    flags: metricsFlags,
  },
  *check({ host, port }, kernel) {
    const wrong = hostProblem(host)
    if (wrong !== null) yield { path: ['host'], text: wrong }
    if (port !== 0 && port === kernel.port)
      yield { path: ['port'], text: `must differ from kernel.port, got ${port}` }
  },
  register(host, config) {
    const { metrics, isControl } = host
    const traffic = new TrafficMetrics(metrics)
    host.provide(TrafficWatch, traffic)
    const stopWatching = declareEventLoopMetrics(metrics, host.threadIndex)
    declareThreadMemory(metrics, host.threadIndex)
    if (isControl) {
      declareProcessMetrics(metrics)
      traffic.watchWorkers(host.balance)
    }
    return {
      start: () => (isControl ? openEndpoint(host, config) : undefined),
      stop: stopWatching,
    }
  },
})
