/** The policies plugin: how requests are spread over the workers of a model, beyond taking turns. */
import { definePlugin, KvEvents, WorkerTableReplica } from '#kernel'
import { policiesConfig } from './config.ts'
import { policiesFlags } from './flags.ts'
import { KvEventMonitor } from './kv-index/kv-event-monitor.ts'
import { PolicyState } from './policy-state.ts'
import { POLICY_NAMES, registerPolicies } from './register-policies.ts'
import { RELOADS, takeOn } from './reload.ts'
import { showRoutingKeys } from './routing-key-gauge.ts'

export default definePlugin({
  manifest: {
    name: 'policies',
    version: '0.1.0',
    description: 'Load balancing by cached prompts, load, session or size; cache_aware becomes the default.',
    usesOptionally: [KvEvents],
    config: policiesConfig,
    flags: policiesFlags,
    policies: POLICY_NAMES,
    reloads: RELOADS,
  },
  register(host, first) {
    const config = structuredClone(first)
    const { metrics, balance } = host
    const state = new PolicyState({
      config,
      shared: (name, bytes) => host.shared(name, bytes),
      metrics: host.isControl ? metrics : null,
      maxWorkers: host.kernelConfig.limits.maxWorkers,
    })
    registerPolicies(host, config, state)
    if (host.isControl)
      showRoutingKeys(
        metrics,
        () => balance.workers,
        (worker) => state.routingKeys(worker),
      )

    let monitor: KvEventMonitor | null = null
    return {
      ready: () => {
        const feed = host.find(KvEvents)
        if (feed === undefined || !host.isData) return
        const opened = new KvEventMonitor({ feed, indexes: state.kvIndexes, metrics })
        monitor = opened
        // Nobody else reads the index. Labels of workers may bring the policy into use later.
        const follow = () => opened.update(balance.usesPolicy('cache_aware') ? balance.workers : [])
        host.replica(WorkerTableReplica).onChange(follow)
        follow()
      },
      reload: (next) => takeOn(config, next),
      stop: () => monitor?.close(),
    }
  },
})
