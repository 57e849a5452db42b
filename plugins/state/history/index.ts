/** The history plugin: responses, items, conversations and background jobs, in the shared or the local store. */
import { definePlugin, History, SharedStore, Store } from '#kernel'
import { findRecordStore, PeriodicBatches } from '#shared'
import { historyConfig } from './config.ts'
import { StoredHistory } from './history-service.ts'
import { UsageReport } from './tenant-usage.ts'

export default definePlugin({
  manifest: {
    name: 'history',
    version: '0.1.0',
    description: 'Stored responses and conversations.',
    provides: [History],
    usesOptionally: [SharedStore, Store],
    degradable: [SharedStore],
    config: historyConfig,
  },
  enables: (_, isEnabled) => (isEnabled('postgres') ? [] : ['storage']),
  register(host, config) {
    const { store, isShared } = findRecordStore(host)
    const outage = () => host.outage(isShared ? SharedStore : Store)
    const history = new StoredHistory(store, config, host.log, isShared, outage)
    host.provide(History, history)
    const report = new UsageReport(history.usage, history.collections.usage, host.metrics)
    const pruning = new PeriodicBatches(
      async (limit) => {
        const pruned = await history.retention.slice(limit)
        if (pruned < limit) await report.refresh()
        return pruned
      },
      config.pruneIntervalMs,
      host.log,
      'old history could not be deleted',
    )
    return {
      // Before the data threads start: jobs that an earlier process ran are lost, and need not wait for its leases.
      start: () => (host.isControl && !isShared ? history.queue.endLeases() : undefined),
      ready: () => (host.isControl ? pruning.start() : undefined),
      stop: async () => {
        await pruning.stop()
        await history.queue.stop()
        await history.usage.flush()
      },
    }
  },
})
