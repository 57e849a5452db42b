/** Every built-in policy against the policy contract. */
import { expect, test } from 'vitest'
import { PolicyRegistry, registerBuiltInPolicies } from '../../kernel/balance/policies/registry.ts'
import { type PolicyPromises, policyContract } from './policy-contract.ts'

const promisesOf: Readonly<Record<string, PolicyPromises>> = {
  random: { prefersLowerCost: false },
  round_robin: { prefersLowerCost: false },
  least_load: { prefersLowerCost: true },
  power_of_two: { prefersLowerCost: true },
}

const registry = new PolicyRegistry()
registerBuiltInPolicies(registry)

for (const [name, promises] of Object.entries(promisesOf)) {
  policyContract(name, () => registry.make(name), promises)
}

test('no built-in policy goes without the contract', () => {
  expect(registry.names()).toEqual(Object.keys(promisesOf))
})
