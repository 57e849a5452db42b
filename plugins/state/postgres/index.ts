/** The postgres plugin: provides records that several gateways share, kept in a PostgreSQL database. */
import { definePlugin, SharedStore } from '#kernel'
import { SlicedWork, StoreMetrics } from '#shared'
import { postgresConfig } from './config.ts'
import { PgStore } from './pg-store.ts'

export default definePlugin({
  manifest: {
    name: 'postgres',
    version: '0.1.0',
    description: 'Records that several gateways share, in PostgreSQL.',
    provides: [SharedStore],
    config: postgresConfig,
  },
  register(host, config) {
    const store = new PgStore(config, {
      metrics: new StoreMetrics(host.metrics, 'postgres'),
      onIdleError: (err) => host.log.warn({ err }, 'an idle connection to the database broke'),
    })
    host.provide(SharedStore, store)
    const sweeper = new SlicedWork(
      (limit) => store.sweep(limit),
      config.sweepIntervalMs,
      host.log,
      'expired records could not be removed',
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
