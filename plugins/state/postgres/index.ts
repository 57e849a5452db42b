/** The postgres plugin: a record store that several gateways share, in a PostgreSQL database. */
import { definePlugin, messageOf, SharedStore } from '#kernel'
import { PeriodicBatches, StoreMetrics } from '#shared'
import { postgresConfig } from './config.ts'
import { DatabaseHealth, DatabaseMonitor } from './database-health.ts'
import { postgresErrors } from './errors.ts'
import { PgStore } from './pg-store.ts'

export default definePlugin({
  manifest: {
    name: 'postgres',
    version: '0.1.0',
    description: 'Record store in PostgreSQL, shared by several gateways.',
    provides: [SharedStore],
    config: postgresConfig,
  },
  *check({ bootWaitMs }, { lifecycle: { stepMs } }) {
    if (stepMs === 0 || bootWaitMs < stepMs) return
    const text = `must be less than kernel.lifecycle.stepMs (${stepMs}), unless that is 0 (got ${bootWaitMs})`
    yield { path: ['bootWaitMs'], text }
  },
  register(host, config) {
    const health = new DatabaseHealth(host.shared('health', DatabaseHealth.BYTES))
    const metrics = new StoreMetrics(host.metrics, 'postgres')
    const store = new PgStore(config, {
      metrics,
      health,
      onIdleError: (error) => host.log.debug({ reason: messageOf(error) }, 'idle database connection failed'),
    })
    host.provide(SharedStore, store)
    host.reportOutages(SharedStore, () => health.problem())
    if (host.isControl) metrics.watch(() => health.problem() === null)
    const monitor = new DatabaseMonitor(store, health, host.log)
    const sweeper = new PeriodicBatches(
      (limit) => store.sweep(limit),
      config.sweepIntervalMs,
      host.log,
      'expired records could not be deleted',
    )
    return {
      start: async () => {
        await store.open()
        if (!host.isControl || (await monitor.start(config.bootWaitMs))) return
        const dependents = host.dependentsOf(SharedStore)
        if (dependents.length > 0) throw postgresErrors.database_required(dependents)
      },
      ready: () => (host.isControl ? sweeper.start() : undefined),
      stop: async () => {
        await sweeper.stop()
        await monitor.stop()
        await store.close()
      },
    }
  },
})
