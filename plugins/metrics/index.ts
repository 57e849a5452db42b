/** Prometheus metrics of requests, calls, workers, breakers and the process, on a listener of their own. */
import { definePlugin, TrafficWatch } from '#kernel'
import { metricsConfig } from './config.ts'
import { openEndpoint } from './endpoint.ts'
import { metricsFlags } from './flags.ts'
import { declareEventLoopMetrics, declareProcessMetrics } from './process-metrics.ts'
import { TrafficMetrics } from './traffic-metrics.ts'

export default definePlugin({
  manifest: {
    name: 'metrics',
    version: '0.1.0',
    description: 'Prometheus metrics on a port of their own.',
    provides: [TrafficWatch],
    config: metricsConfig,
    flags: metricsFlags,
  },
  register(host, config) {
    const { metrics, isControl } = host
    if (config.port !== 0 && config.port === host.kernelConfig.port)
      throw new Error(`plugins.metrics.port must differ from kernel.port, got ${config.port}`)
    const traffic = new TrafficMetrics(metrics)
    host.provide(TrafficWatch, traffic)
    const stopWatching = declareEventLoopMetrics(metrics, host.threadIndex)
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
