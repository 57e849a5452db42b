/** The postgres plugin: a record store that several gateways share, in a PostgreSQL database. */
import { definePlugin, SharedStore } from '#kernel'
import { PeriodicBatches, StoreMetrics } from '#shared'
import { postgresConfig } from './config.ts'
import { PgStore } from './pg-store.ts'

export default definePlugin({
  manifest: {
    name: 'postgres',
    version: '0.1.0',
    description: 'Record store in PostgreSQL, shared by several gateways.',
    provides: [SharedStore],
    config: postgresConfig,
  },
  register(host, config) {
    const store = new PgStore(config, {
      metrics: new StoreMetrics(host.metrics, 'postgres'),
      onIdleError: (err) => host.log.warn({ err }, 'idle database connection failed'),
    })
    host.provide(SharedStore, store)
    const sweeper = new PeriodicBatches(
      (limit) => store.sweep(limit),
      config.sweepIntervalMs,
      host.log,
      'expired records could not be deleted',
    )
    return {
      start: async () => {
        await store.open()
        if (host.isControl) await store.prepare()
      },
      ready: () => {
        if (host.isControl) sweeper.start()
      },
      stop: async () => {
        await sweeper.stop()
        await store.close()
      },
    }
  },
})
