/** The storage plugin: the record store in a directory on disk. */
import { definePlugin, Store } from '#kernel'
import { PeriodicBatches, StoreMetrics } from '#shared'
import { storageConfig } from './config.ts'
import { storageFlags } from './flags.ts'
import { LevelStore, SHARED_BYTES } from './level-store.ts'

export default definePlugin({
  manifest: {
    name: 'storage',
    version: '0.1.0',
    description: 'Durable record store in a data directory.',
    provides: [Store],
    config: storageConfig,
    flags: storageFlags,
  },
  register(host, config) {
    const metrics = new StoreMetrics(host.metrics, 'leveldb')
    const store = new LevelStore(config.dir, {
      metrics,
      shared: host.shared('turns', SHARED_BYTES),
      maxRecordBytes: config.maxRecordBytes,
      maxWaitingBytes: config.maxWaitingBytes,
      warn: (message) => host.isControl && host.log.warn({}, message),
    })
    host.provide(Store, store)
    host.reportOutages(Store, () => store.problem())
    if (host.isControl) metrics.watch(() => store.problem() === null)
    const sweeper = new PeriodicBatches(
      (limit) => store.sweep(limit),
      config.sweepIntervalMs,
      host.log,
      'expired records could not be deleted',
    )
    return {
      start: () => store.open(),
      ready: () => (host.isControl ? sweeper.start() : undefined),
      stop: async () => {
        await sweeper.stop()
        await store.close()
      },
    }
  },
})
