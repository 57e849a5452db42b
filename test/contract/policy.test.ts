/** Every bundled policy, and a third-party one, against the policy contract. */

import { expect, test } from 'vitest'
import { definePlugin, type KvEventListener, KvEvents, Type, type WorkerEntry } from '#kernel'
import { PLAIN_POLICY } from '../../kernel/balance/policy-registry.ts'
import type { PickRequest } from '../../kernel/contracts/policy.ts'
import policies from '../../plugins/routing/policies/index.ts'
import thirdParty from '../fixtures/policy-plugin.ts'
import {
  engineLoad,
  fleetOf,
  fleetWorker,
  PolicyThread,
  pickRequest,
  pickSlot,
} from '../support/policy-fleet.ts'
import { PolicyHostThread } from '../support/policy-host.ts'
import { workerEntry } from '../support/worker-entry.ts'
import { type PolicyPromises, policyContract, policyThreadsContract } from './policy-contract.ts'

const plain: PolicyPromises = { prefersLowerCost: false, agreesOverThreads: false, refuses: null }
const byLoad: PolicyPromises = { ...plain, prefersLowerCost: true }
const remembering: PolicyPromises = { ...plain, agreesOverThreads: true }
/** A request that names a worker by number gets that worker or none. */
const namesWorker = (request: PickRequest) => request.header('x-weir-target-worker') !== undefined

const promisesOf: Readonly<Record<string, PolicyPromises>> = {
  [PLAIN_POLICY]: plain,
  random: plain,
  passthrough: plain,
  power_of_two: byLoad,
  least_load: byLoad,
  cache_aware: { ...byLoad, agreesOverThreads: true },
  bucket: plain,
  manual: remembering,
  consistent_hashing: { ...remembering, refuses: namesWorker },
  prefix_hash: remembering,
}

const fileOf = (path: string) => new URL(path, import.meta.url).href

for (const [name, promises] of Object.entries(promisesOf)) {
  policyContract(name, (parts) => new PolicyThread().policy(name, parts), promises)
  policyThreadsContract(name, fileOf('../../plugins/routing/policies/index.ts'), promises)
}

policyContract(
  'rendezvous',
  (parts) => new PolicyHostThread([thirdParty]).policy('rendezvous', parts),
  remembering,
)
policyThreadsContract('rendezvous', fileOf('../fixtures/policy-plugin.ts'), remembering)

test('every bundled policy is covered by the contract', () => {
  expect(new PolicyHostThread([policies]).balance.registry.names()).toEqual(Object.keys(promisesOf))
})

test('a policy that the manifest does not list cannot be registered', () => {
  const { register } = thirdParty
  const { policies: _, ...manifest } = thirdParty.manifest
  expect(() => new PolicyHostThread([definePlugin({ manifest, register })])).toThrow(
    "policy 'rendezvous' is not listed under policies",
  )
})

test('a third-party policy can be the default, and two defaults are rejected with both names', () => {
  const another = definePlugin({
    manifest: { ...thirdParty.manifest, name: 'another', policies: ['another'] },
    register(host) {
      host.policy('another', () => ({ name: 'another', needsBody: false, pick: () => 0 }), {
        isDefault: true,
      })
    },
  })
  expect(new PolicyHostThread([another]).balance.usesPolicy('another')).toBe(true)
  expect(() => new PolicyHostThread([policies, another])).toThrow(
    "policies 'cache_aware' and 'another' cannot both be the default",
  )
})

test('a third-party policy reads engine reports and enables their polling', () => {
  const thread = new PolicyHostThread([thirdParty], 'rendezvous')
  expect(thread.balance.readsLoads).toBe(true)
  expect(new PolicyHostThread([thirdParty], 'round_robin').balance.readsLoads).toBe(false)
  const policy = thread.policy('rendezvous')
  const fleet = [0, 1, 2].map((slot) =>
    fleetWorker(slot, { load: engineLoad({ kvUsage: slot === 1 ? 0.1 : 0.95 }) }),
  )
  for (let i = 0; i < 20; i++) {
    expect(pickSlot(policy, fleet, pickRequest({ tokenIds: Uint32Array.of(i, i + 1) }))).toBe(1)
  }
  policy.close?.()
})

test('a third-party policy receives KV events of the workers that have them while it is in use', async () => {
  const listeners = new Map<string, KvEventListener>()
  const closed: string[] = []
  const feed = definePlugin({
    manifest: {
      name: 'feed',
      version: '0.0.0',
      description: 'events',
      config: Type.Object({}),
      provides: [KvEvents],
    },
    register(host) {
      host.provide(KvEvents, {
        covers: (worker: WorkerEntry) => worker.slot !== 2,
        subscribe(worker, _from, listener) {
          listeners.set(worker.id, listener)
          return { close: () => void closed.push(worker.id) }
        },
      })
    },
  })
  const thread = new PolicyHostThread([feed, thirdParty], 'round_robin')
  await thread.ready()
  const workers = [0, 1, 2].map((slot) => workerEntry({ slot, id: `w${slot}`, models: ['m'] }))
  await thread.setWorkers(...workers)
  expect([...listeners.keys()]).toEqual([])
  const labelled = { ...workers[0], labels: { policy: 'Rendezvous' }, revision: 2 }
  await thread.setWorkers(labelled, workers[1], workers[2])
  expect([...listeners.keys()]).toEqual(['w0', 'w1'])
  const block = { hash: 1n, tokenIds: Uint32Array.of(1) }
  const stored = { kind: 'stored', parentHash: null, blocks: [block], blockSize: 1 } as const
  listeners.get('w1')?.onBatch({ sequence: 1, events: [stored] })
  const policy = thread.policy('rendezvous')
  for (let i = 0; i < 20; i++) {
    expect(pickSlot(policy, fleetOf(3), pickRequest({ tokenIds: Uint32Array.of(i) }))).toBe(1)
  }
  policy.close?.()
  await thread.setWorkers(labelled)
  expect(closed).toEqual(['w1'])
  await thread.close()
  expect(closed).toEqual(['w1', 'w0'])
})
