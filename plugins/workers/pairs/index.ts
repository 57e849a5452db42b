/** Prefill/decode pairs of HTTP workers: both get the request at once and connect through the prefill worker's bootstrap server. */
import { definePlugin, type PairStrategy, Type } from '#kernel'
import { PairMetrics } from '#shared'
import { withBootstrap } from './bootstrap.ts'
import { PairExchange } from './pair-exchange.ts'

export default definePlugin({
  manifest: {
    name: 'pairs',
    version: '0.1.0',
    description: 'Prefill/decode pairs of HTTP workers.',
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    const metrics = new PairMetrics(host.metrics)
    const strategy: PairStrategy = {
      mode: 'http',
      requests(pair, whole) {
        try {
          return withBootstrap(pair, whole)
        } catch (error) {
          metrics.onBootstrapFailure()
          throw error
        }
      },
      start(pair, requests, handler) {
        const exchange = new PairExchange(pair, handler, metrics.of(pair.prefill, pair.model))
        exchange.start(requests)
        return exchange
      },
    }
    host.pairs(strategy)
  },
})
