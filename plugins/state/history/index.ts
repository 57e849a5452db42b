/** The history plugin: responses, items, conversations and background work, over the shared store or the gateway's own. */
import { definePlugin, History, SharedStore, Store } from '#kernel'
import { SlicedWork } from '#shared'
import { historyConfig } from './config.ts'
import { historyErrors } from './errors.ts'
import { StoredHistory } from './history-service.ts'

export default definePlugin({
  manifest: {
    name: 'history',
    version: '0.1.0',
    description: 'Responses and conversations that outlive their request.',
    provides: [History],
    usesOptionally: [SharedStore, Store],
    config: historyConfig,
  },
  enables: (_, isEnabled) => (isEnabled('postgres') ? [] : ['storage']),
  register(host, config) {
    const shared = host.find(SharedStore)
    const store = shared ?? host.find(Store)
    if (store === undefined) throw historyErrors.history_store_missing()
    const history = new StoredHistory(store, config, host.log, shared !== undefined)
    host.provide(History, history)
    const pruning = new SlicedWork(
      (limit) => history.retention.slice(limit),
      config.pruneIntervalMs,
      host.log,
      'old responses could not be removed',
    )
    return {
      ready: () => {
        if (host.isControl) pruning.start()
      },
      stop: async () => {
        await pruning.stop()
        await history.queue.stop()
      },
    }
  },
})
