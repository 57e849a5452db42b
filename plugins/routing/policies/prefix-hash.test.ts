import { expect, test } from 'vitest'
import {
  chatRequest,
  fleetOf,
  PolicyThread,
  pickRequest,
  pickSlot,
} from '../../../test/support/policy-fleet.ts'

const branch = (thread: PolicyThread, name: string) =>
  thread.metric('weir_prefix_hash_policy_branch_total', name)

function tokens(prefix: number, rest: number): Uint32Array {
  return Uint32Array.from({ length: 400 }, (_, i) => (i < 256 ? prefix * 1_000 + i : rest * 7 + i))
}

test('prompts with the same first 256 tokens go to the same worker', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('prefix_hash')
  const fleet = fleetOf(8)
  const home = (prefix: number, rest: number) =>
    pickSlot(policy, fleet, pickRequest({ tokenIds: tokens(prefix, rest) }))
  const homes = Array.from({ length: 20 }, (_, prefix) => home(prefix, 1))
  expect(Array.from({ length: 20 }, (_, prefix) => home(prefix, 2))).toEqual(homes)
  expect(new Set(homes).size).toBeGreaterThan(3)
  expect(branch(thread, 'ring_hit')).toBe(40)
})

test('a worker with more than 1.25 times the mean in flight is skipped for the least loaded', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('prefix_hash')
  const fleet = fleetOf(4)
  const request = pickRequest({ tokenIds: tokens(1, 1) })
  const home = pickSlot(policy, fleet, request)
  for (const worker of fleet) worker.inFlight = 8
  fleet[home].inFlight = 10
  const idle = (home + 1) % 4
  fleet[idle].inFlight = 7
  // (33 + 1) ÷ 4 × 1.25 = 10.6: still within.
  expect(pickSlot(policy, fleet, request)).toBe(home)
  fleet[home].inFlight = 13
  // (36 + 1) ÷ 4 × 1.25 = 11.6.
  expect(pickSlot(policy, fleet, request)).toBe(idle)
  expect(branch(thread, 'load_balance_walk')).toBe(1)
})

test('without token ids the first 1024 bytes decide', () => {
  const policy = new PolicyThread().policy('prefix_hash')
  const fleet = fleetOf(50)
  const shared = 'x'.repeat(1_024)
  expect(pickSlot(policy, fleet, chatRequest(`${shared} one`))).toBe(
    pickSlot(policy, fleet, chatRequest(`${shared} other`)),
  )
  const homes = new Set(
    Array.from({ length: 20 }, (_, i) => pickSlot(policy, fleet, chatRequest(`${i}${shared}`))),
  )
  expect(homes.size).toBeGreaterThan(5)
})

test('a request without a prompt goes to the least loaded worker', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('prefix_hash')
  const fleet = fleetOf(3)
  fleet[0].inFlight = 2
  fleet[1].inFlight = 1
  expect(pickSlot(policy, fleet, pickRequest({ body: '{"model":"m"}' }))).toBe(2)
  expect(branch(thread, 'no_tokens')).toBe(1)
})
