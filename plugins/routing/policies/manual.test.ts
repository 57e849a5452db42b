import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SharedMemory } from '../../../kernel/threads/shared-memory.ts'
import {
  countSlots,
  fleetOf,
  fleetWorker,
  PolicyThread,
  pickRequest,
  pickSlot,
  seededRandom,
} from '../../../test/support/policy-fleet.ts'

const session = (key: string, model = 'm') => pickRequest({ model, headers: { 'x-smg-routing-key': key } })
const branch = (thread: PolicyThread, name: string) => thread.metric('weir_manual_policy_branch_total', name)
const entries = (thread: PolicyThread) => thread.metric('weir_manual_policy_cache_entries')

test('a key keeps its worker for 100 requests, moves while it is down, and returns', () => {
  const thread = new PolicyThread()
  const policy = thread.policy('manual')
  const fleet = fleetOf(4)
  const home = pickSlot(policy, fleet, session('k'))
  expect(
    countSlots(
      policy,
      fleet,
      Array.from({ length: 100 }, () => session('k')),
    ),
  ).toEqual({ [home]: 100 })
  fleet[home].isAvailable = false
  const refuge = pickSlot(policy, fleet, session('k'))
  expect(refuge).not.toBe(home)
  expect(pickSlot(policy, fleet, session('k'))).toBe(refuge)
  fleet[home].isAvailable = true
  expect(pickSlot(policy, fleet, session('k'))).toBe(home)
  expect([branch(thread, 'vacant'), branch(thread, 'occupied_miss')]).toEqual([1, 1])
  expect(branch(thread, 'occupied_hit')).toBe(102)
  policy.close?.()
})

test('a key has the same worker on another thread', () => {
  const memory = new SharedMemory()
  const policies = Array.from({ length: 3 }, () => new PolicyThread({}, memory).policy('manual'))
  const fleet = fleetOf(20)
  for (let i = 0; i < 50; i++) {
    const slots = new Set(policies.map((policy) => pickSlot(policy, fleet, session(`key-${i}`))))
    expect(slots.size).toBe(1)
  }
  for (const policy of policies) policy.close?.()
})

test('min_group spreads 30 new keys over 3 workers, 10 each', () => {
  const thread = new PolicyThread({ manual: { assignmentMode: 'min_group' } })
  const policy = thread.policy('manual')
  const keys = Array.from({ length: 30 }, (_, i) => session(`key-${i}`))
  expect(countSlots(policy, fleetOf(3), keys)).toEqual({ 0: 10, 1: 10, 2: 10 })
  expect(entries(thread)).toBe(30)
  policy.close?.()
})

test('a request without a key is not stored', () => {
  const thread = new PolicyThread({ manual: { assignmentMode: 'min_group' } })
  const policy = thread.policy('manual', { random: seededRandom(3) })
  const counts = countSlots(
    policy,
    fleetOf(3),
    Array.from({ length: 90 }, () => pickRequest()),
  )
  expect(Object.keys(counts)).toEqual(['0', '1', '2'])
  expect(entries(thread)).toBe(0)
  expect(branch(thread, 'no_routing_id')).toBe(90)
  policy.close?.()
})

describe('over time', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_800_000_000_000 })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('a session idle longer than the limit is removed by the next sweep', () => {
    const thread = new PolicyThread({ manual: { maxIdleSecs: 100, sweepIntervalSecs: 60 } })
    const policy = thread.policy('manual')
    const fleet = fleetOf(2)
    pickSlot(policy, fleet, session('idle'))
    pickSlot(policy, fleet, session('busy'))
    vi.advanceTimersByTime(90_000)
    pickSlot(policy, fleet, session('busy'))
    expect(entries(thread)).toBe(2)
    vi.advanceTimersByTime(60_000)
    expect(entries(thread)).toBe(1)
    policy.close?.()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a session idle longer than the limit counts as new before the sweep too', () => {
    const thread = new PolicyThread({ manual: { maxIdleSecs: 10, sweepIntervalSecs: 1_000 } })
    const policy = thread.policy('manual')
    pickSlot(policy, fleetOf(2), session('k'))
    vi.advanceTimersByTime(12_000)
    pickSlot(policy, fleetOf(2), session('k'))
    expect(branch(thread, 'vacant')).toBe(2)
    policy.close?.()
  })

  test('a session that returns after the limit is one session again, on one worker', () => {
    const thread = new PolicyThread({ manual: { maxIdleSecs: 10, sweepIntervalSecs: 1_000 } })
    const policy = thread.policy('manual')
    const fleet = fleetOf(20)
    const slots: number[] = []
    for (let round = 0; round < 3; round++) {
      const first = pickSlot(policy, fleet, session('k'))
      for (let i = 0; i < 5; i++) slots.push(pickSlot(policy, fleet, session('k')) - first)
      vi.advanceTimersByTime(12_000)
    }
    expect(slots).toEqual(Array(15).fill(0))
    expect([branch(thread, 'vacant'), branch(thread, 'occupied_hit')]).toEqual([3, 15])
    expect(entries(thread)).toBe(1)
    policy.close?.()
  })
})

test('min_load picks the worker with the fewest requests in flight', () => {
  const policy = new PolicyThread({ manual: { assignmentMode: 'min_load' } }).policy('manual')
  const fleet = [5, 1, 3].map((inFlight, slot) => fleetWorker(slot, { inFlight }))
  expect(pickSlot(policy, fleet, session('k'))).toBe(1)
  policy.close?.()
})

test('a session has its own worker for each leg and each model', () => {
  const thread = new PolicyThread()
  const fleet = fleetOf(50)
  const slots = [
    pickSlot(thread.policy('manual'), fleet, session('k')),
    pickSlot(thread.policy('manual', { leg: 'prefill' }), fleet, session('k')),
    pickSlot(thread.policy('manual', { leg: 'decode' }), fleet, session('k')),
    pickSlot(thread.policy('manual'), fleet, session('k', 'n')),
  ]
  expect(entries(thread)).toBe(4)
  expect(new Set(slots).size).toBeGreaterThan(1)
})

test('a worker in a reused slot inherits neither sessions nor their count', () => {
  const thread = new PolicyThread({ manual: { assignmentMode: 'min_group' } })
  const policy = thread.policy('manual')
  const keys = Array.from({ length: 20 }, (_, i) => session(`key-${i}`))
  const before = [fleetWorker(0), fleetWorker(1)]
  const homes = keys.map((key) => pickSlot(policy, before, key))
  const after = [fleetWorker(0, { id: 'another' }), fleetWorker(1)]
  const moved = keys.filter((_, i) => homes[i] === 0)
  expect(moved).toHaveLength(10)
  // The new worker has no sessions, so it gets all new ones.
  expect(countSlots(policy, after, moved)).toEqual({ 0: 10 })
  expect(branch(thread, 'occupied_miss')).toBe(10)
  policy.close?.()
})

test('a full table evicts the longest idle sessions', () => {
  const thread = new PolicyThread({ manual: { maxSessions: 1_024 } })
  const policy = thread.policy('manual')
  const fleet = fleetOf(3)
  for (let i = 0; i < 5_000; i++) pickSlot(policy, fleet, session(`key-${i}`))
  expect(entries(thread)).toBeLessThanOrEqual(1_024)
  const last = pickSlot(policy, fleet, session('key-4999'))
  expect(branch(thread, 'occupied_hit')).toBe(1)
  expect(pickSlot(policy, fleet, session('key-4999'))).toBe(last)
  policy.close?.()
})
