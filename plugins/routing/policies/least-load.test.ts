import { expect, test } from 'vitest'
import { SharedMemory } from '../../../kernel/threads/shared-memory.ts'
import {
  countSlots,
  engineLoad,
  fleetOf,
  fleetWorker,
  PolicyThread,
  pickRequest,
  pickSlot,
} from '../../../test/support/policy-fleet.ts'

const requests = (count: number) => Array.from({ length: count }, () => pickRequest())

test('without reports the shortest queue wins: 3, 1, 2 in flight takes the second', () => {
  const policy = new PolicyThread().policy('least_load')
  const fleet = [3, 1, 2].map((inFlight, slot) => fleetWorker(slot, { inFlight }))
  expect(pickSlot(policy, fleet)).toBe(1)
  expect(policy.explain?.()).toBe('1 in flight on slot 1')
})

test('a nearly full engine with an empty queue scores worse than 200 queued tokens', () => {
  const policy = new PolicyThread().policy('least_load')
  const full = fleetWorker(0, { load: engineLoad({ kvUsage: 0.99, tokensPerSecond: 2_000 }) })
  const queued = fleetWorker(1, {
    load: engineLoad({ kvUsage: 0.1, queuedTokens: 200, tokensPerSecond: 2_000 }),
  })
  expect(pickSlot(policy, [full, queued])).toBe(1)
  // 0.1 s of queue and 0.15 × 0.1 ÷ 0.9 s of pressure.
  expect(policy.explain?.()).toBe('0.117 s on slot 1')
})

test('ten equal requests between two reports split 5 to 5', () => {
  const policy = new PolicyThread().policy('least_load')
  const load = () => engineLoad({ kvUsage: 0.2, tokensPerSecond: 1_000 })
  expect(
    countSlots(policy, [fleetWorker(0, { load: load() }), fleetWorker(1, { load: load() })], requests(10)),
  ).toEqual({ 0: 5, 1: 5 })
})

test('threads include requests sent by others since the report', () => {
  const memory = new SharedMemory()
  const one = new PolicyThread({}, memory).policy('least_load')
  const other = new PolicyThread({}, memory).policy('least_load')
  const fleet = fleetOf(2)
  for (const worker of fleet) worker.load = engineLoad({ tokensPerSecond: 1_000 })
  const first = pickSlot(one, fleet)
  expect(pickSlot(other, fleet)).toBe(1 - first)
})

test('a new report replaces requests sent before it; an older one does not', () => {
  const memory = new SharedMemory()
  const ahead = new PolicyThread({}, memory).policy('least_load')
  const behind = new PolicyThread({}, memory).policy('least_load')
  const report = (atMs: number) => engineLoad({ tokensPerSecond: 1_000, atMs })
  const fleet = (atMs: number, queued: number) => [
    fleetWorker(0, { load: report(atMs) }),
    fleetWorker(1, { load: { ...report(atMs), queuedTokens: queued } }),
  ]
  // Ten requests of 1024 tokens, then a report that includes them: 500 queued tokens score worse again.
  countSlots(ahead, fleet(1_000, 500), requests(10))
  expect(pickSlot(ahead, fleet(2_000, 500))).toBe(0)
  // The other thread still has the old report; its requests count since the newest report.
  expect(pickSlot(behind, fleet(1_000, 500))).toBe(1)
})

test('a tokenised prompt counts by its tokens', () => {
  const policy = new PolicyThread().policy('least_load')
  const fleet = fleetOf(2)
  for (const worker of fleet) worker.load = engineLoad({ tokensPerSecond: 1_000 })
  const long = pickRequest({ tokenIds: new Uint32Array(4_096) })
  const first = pickSlot(policy, fleet, long)
  // Four requests of 1024 tokens equal the long one.
  expect(countSlots(policy, fleet, requests(4))).toEqual({ [1 - first]: 4 })
})

test('a worker without a report counts by requests in flight, at the mean throughput of the others', () => {
  const policy = new PolicyThread().policy('least_load')
  const fleet = [
    fleetWorker(0, { load: engineLoad({ queuedTokens: 1_500, tokensPerSecond: 1_000 }) }),
    fleetWorker(1, { inFlight: 1 }),
    fleetWorker(2, { inFlight: 9 }),
  ]
  // 1.5 s against 1024 ÷ 1000 s and nine times that.
  expect(pickSlot(policy, fleet)).toBe(1)
  fleet[1].inFlight = 2
  expect(pickSlot(policy, fleet)).toBe(0)
})

test('an engine that reports its memory but not its queue counts by requests in flight', () => {
  const policy = new PolicyThread().policy('least_load')
  const load = engineLoad({ queuedTokens: -1, kvUsage: 0.3 })
  const fleet = [fleetWorker(0, { inFlight: 4, load }), fleetWorker(1, { inFlight: 3, load })]
  expect(countSlots(policy, fleet, requests(5))).toEqual({ 1: 5 })
})

test('equal workers rotate, with and without reports', () => {
  const policy = new PolicyThread().policy('least_load')
  expect(countSlots(policy, fleetOf(3), requests(30))).toEqual({ 0: 10, 1: 10, 2: 10 })
})

test('of workers with equal scores the cheaper one is picked', () => {
  const policy = new PolicyThread().policy('least_load')
  const fleet = [fleetWorker(0, { cost: 2 }), fleetWorker(1, { cost: 1 })]
  for (const worker of fleet) worker.load = engineLoad({ queuedTokens: -1, kvUsage: 0.5 })
  expect(countSlots(policy, fleet, requests(5))).toEqual({ 1: 5 })
})
