/** The policies plugin: load balancing policies beyond round robin. */
import { definePlugin, KvEvents, Mesh, WorkerTableReplica } from '#kernel'
import { applyReload, policiesConfig, RELOADS } from './config.ts'
import { policiesFlags } from './flags.ts'
import { KvEventMonitor } from './kv-index/kv-event-monitor.ts'
import { openNoteExchanges, openNoteRings } from './notes/shared-notes.ts'
import { PolicyState } from './policy-state.ts'
import { POLICY_NAMES, registerPolicies } from './register-policies.ts'

export default definePlugin({
  manifest: {
    name: 'policies',
    version: '0.1.0',
    description:
      'Load balancing by prompt cache, load, session or prompt size; makes cache_aware the default policy.',
    usesOptionally: [KvEvents, Mesh],
    config: policiesConfig,
    flags: policiesFlags,
    policies: POLICY_NAMES,
    reloads: RELOADS,
  },
  register(host, first) {
    const config = structuredClone(first)
    const { metrics, balance } = host
    const rings = openNoteRings(host)
    const state = new PolicyState({
      config,
      shared: (name, bytes) => host.shared(name, bytes),
      metrics: host.isControl ? metrics : null,
      maxWorkers: host.kernelConfig.limits.maxWorkers,
      ...(host.isData && { rings }),
    })
    const exchanges = host.isControl ? openNoteExchanges(host, rings, state) : null
    registerPolicies(host, config, state)
    if (host.isControl) state.declareRoutingKeyGauge(metrics, () => balance.workers)

    let monitor: KvEventMonitor | null = null
    return {
      start: () => exchanges?.start(),
      ready: () => {
        const feed = host.find(KvEvents)
        if (feed === undefined || !host.isData) return
        const opened = new KvEventMonitor({ feed, indexes: state.kvIndexes, metrics })
        monitor = opened
        // Only cache_aware reads the index; worker labels may select that policy later.
        const follow = () => opened.update(balance.usesPolicy('cache_aware') ? balance.workers : [])
        host.replica(WorkerTableReplica).onChange(follow)
        follow()
      },
      reload: (next) => applyReload(config, next),
      stop: () => {
        exchanges?.close()
        monitor?.close()
      },
    }
  },
})
