/** Every built-in policy against the policy contract. */
import { expect, test } from 'vitest'
import type { PickRequest } from '../../kernel/contracts/policy.ts'
import { PolicyThread } from '../support/policy-fleet.ts'
import { type PolicyPromises, policyContract } from './policy-contract.ts'

const plain: PolicyPromises = { prefersLowerCost: false, refuses: null }
const byLoad: PolicyPromises = { prefersLowerCost: true, refuses: null }
/** Who asks for one worker by its number gets that one or none. */
const namesWorker = (request: PickRequest) => request.header('x-weir-target-worker') !== undefined

const promisesOf: Readonly<Record<string, PolicyPromises>> = {
  random: plain,
  round_robin: plain,
  passthrough: plain,
  power_of_two: byLoad,
  least_load: byLoad,
  cache_aware: byLoad,
  bucket: plain,
  manual: plain,
  consistent_hashing: { prefersLowerCost: false, refuses: namesWorker },
  prefix_hash: plain,
}

for (const [name, promises] of Object.entries(promisesOf)) {
  policyContract(name, (parts) => new PolicyThread().policy(name, parts), promises)
}

test('no built-in policy goes without the contract', () => {
  expect(new PolicyThread().registry.names()).toEqual(Object.keys(promisesOf))
})
