import { expect, test } from 'vitest'
import {
  countSlots,
  fleetOf,
  PolicyThread,
  pickRequest,
  pickSlot,
} from '../../../test/support/policy-fleet.ts'

const keyed = (key: string) => pickRequest({ headers: { 'x-weir-routing-key': key } })
const keys = Array.from({ length: 10_000 }, (_, i) => keyed(`session-${i}`))
const branch = (thread: PolicyThread, name: string) =>
  thread.metric('weir_consistent_hashing_policy_branch_total', name)

test('a fifth worker receives between 10 and 30 % of the keys, and returns all of them', () => {
  const policy = new PolicyThread().policy('consistent_hashing')
  const homes = (count: number) =>
    keys.map((key) => pickSlot(policy, four.concat(count === 5 ? fifth : []), key))
  const four = fleetOf(4)
  const fifth = fleetOf(5).slice(4)
  const before = homes(4)
  const grown = homes(5)
  const moved = keys.filter((_, i) => before[i] !== grown[i])
  expect(moved.length).toBeGreaterThan(1_000)
  expect(moved.length).toBeLessThan(3_000)
  expect(grown.filter((slot, i) => slot !== before[i] && slot !== 4)).toEqual([])
  expect(homes(4)).toEqual(before)
})

test('keys are spread evenly, equally on every thread', () => {
  const fleet = fleetOf(10)
  const counts = countSlots(new PolicyThread().policy('consistent_hashing'), fleet, keys)
  expect(countSlots(new PolicyThread().policy('consistent_hashing'), fleet, keys)).toEqual(counts)
  for (const count of Object.values(counts)) {
    expect(count).toBeGreaterThan(700)
    expect(count).toBeLessThan(1_300)
  }
})

test('keys of an unavailable worker move to others and return, those of others stay', () => {
  const policy = new PolicyThread().policy('consistent_hashing')
  const fleet = fleetOf(4)
  const before = keys.map((key) => pickSlot(policy, fleet, key))
  fleet[2].isAvailable = false
  const meanwhile = keys.map((key) => pickSlot(policy, fleet, key))
  expect(meanwhile.filter((slot, i) => before[i] !== 2 && slot !== before[i])).toEqual([])
  // Its keys are spread over all other workers.
  expect(new Set(meanwhile.filter((_, i) => before[i] === 2))).toEqual(new Set([0, 1, 3]))
  fleet[2].isAvailable = true
  expect(keys.map((key) => pickSlot(policy, fleet, key))).toEqual(before)
})

test('x-smg-target-worker 1 picks the second worker, an invalid or unavailable one none', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('consistent_hashing')
  const fleet = fleetOf(3)
  const targeted = (value: string, name = 'x-smg-target-worker') =>
    pickSlot(policy, fleet, pickRequest({ headers: { [name]: value, 'x-weir-routing-key': 'k' } }))
  expect(targeted('1')).toBe(1)
  expect(targeted('2', 'x-weir-target-worker')).toBe(2)
  for (const invalid of ['3', '-1', '', 'x', '1.0', ' 1', '1e0', '99999999999999999999']) {
    expect(targeted(invalid)).toBe(-1)
  }
  fleet[0].isAvailable = false
  // Indexes refer to all workers, available or not.
  expect(targeted('0')).toBe(-1)
  expect(targeted('1')).toBe(1)
  expect([branch(thread, 'target_worker_hit'), branch(thread, 'target_worker_miss')]).toEqual([3, 9])
})

test('without a routing key Authorization precedes X-Forwarded-For, which precedes Cookie', () => {
  const policy = new PolicyThread().policy('consistent_hashing')
  const fleet = fleetOf(50)
  const slot = (headers: Record<string, string>) => pickSlot(policy, fleet, pickRequest({ headers }))
  const cookie = { cookie: 'c' }
  const address = { 'x-forwarded-for': '10.0.0.1' }
  const key = { authorization: 'Bearer k' }
  const session = { 'x-weir-routing-key': 's' }
  const alone = [cookie, address, key, session].map(slot)
  // Four different workers, so that the deciding header is visible.
  expect(new Set(alone).size).toBe(4)
  expect(slot({ ...cookie, ...address })).toBe(alone[1])
  expect(slot({ ...cookie, ...address, ...key })).toBe(alone[2])
  expect(slot({ ...cookie, ...address, ...key, ...session })).toBe(alone[3])
})

test('a request without any key goes to a random worker', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('consistent_hashing')
  const counts = countSlots(
    policy,
    fleetOf(3),
    Array.from({ length: 200 }, () => pickRequest()),
  )
  expect(Object.keys(counts)).toEqual(['0', '1', '2'])
  expect(branch(thread, 'random_fallback')).toBe(200)
})
