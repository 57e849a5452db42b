/** The storage plugin: provides the record store, kept in one directory on disk. */
import { definePlugin, Store } from '#kernel'
import { storageConfig } from './config.ts'
import { storageFlags } from './flags.ts'
import { LevelStore } from './level-store.ts'
import { StoreMetrics } from './store-metrics.ts'

export default definePlugin({
  manifest: {
    name: 'storage',
    version: '0.1.0',
    description: 'Durable JSON records in a data directory.',
    provides: [Store],
    config: storageConfig,
    flags: storageFlags,
  },
  register(host, config) {
    const store = new LevelStore(config.dir, new StoreMetrics(host.metrics))
    host.provide(Store, store)
    return { start: () => store.open(), stop: () => store.close() }
  },
})
