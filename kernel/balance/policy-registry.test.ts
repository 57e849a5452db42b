import { expect, test } from 'vitest'
import { countSlots, fleetOf, PolicyThread, pickRequest, pickSlot } from '../../test/support/policy-fleet.ts'

test('round_robin over 3 workers and 300 requests gives exactly 100 each', () => {
  const policy = new PolicyThread().policy('round_robin')
  const requests = Array.from({ length: 300 }, () => pickRequest())
  expect(countSlots(policy, fleetOf(3), requests)).toEqual({ 0: 100, 1: 100, 2: 100 })
})

test('each leg of a pair rotates separately, so that every worker of a pool is used', () => {
  const thread = new PolicyThread()
  const prefill = thread.policy('round_robin', { leg: 'prefill' })
  const decode = thread.policy('round_robin', { leg: 'decode' })
  const pairs = Array.from({ length: 4 }, () => [pickSlot(prefill, fleetOf(2)), pickSlot(decode, fleetOf(2))])
  expect(pairs).toEqual([
    [0, 0],
    [1, 1],
    [0, 0],
    [1, 1],
  ])
})

test('an unavailable worker is skipped', () => {
  const policy = new PolicyThread().policy('round_robin')
  const fleet = fleetOf(3)
  fleet[1].isAvailable = false
  const requests = Array.from({ length: 100 }, () => pickRequest())
  expect(countSlots(policy, fleet, requests)).toEqual({ 0: 50, 2: 50 })
})
