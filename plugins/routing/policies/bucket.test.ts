import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  chatRequest,
  fleetOf,
  PolicyThread,
  pickRequest,
  pickSlot,
} from '../../../test/support/policy-fleet.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const short = () => chatRequest('s'.repeat(100))
const long = () => chatRequest('l'.repeat(3_000))

test('short prompts go to one worker and long ones to another until load is uneven, then to the lightest', () => {
  const policy = new PolicyThread({ bucket: { balanceAbsThreshold: 5_000 } }).policy('bucket')
  const fleet = fleetOf(2)
  expect(pickSlot(policy, fleet, short())).toBe(0)
  expect(pickSlot(policy, fleet, long())).toBe(1)
  expect(pickSlot(policy, fleet, short())).toBe(0)
  expect(pickSlot(policy, fleet, long())).toBe(1)
  // 6 KB against 0.25 KB: long prompts go to the worker of the short ones too.
  expect(pickSlot(policy, fleet, long())).toBe(0)
})

test('requests older than the interval no longer count', () => {
  const policy = new PolicyThread({ bucket: { balanceAbsThreshold: 5_000 } }).policy('bucket')
  const fleet = fleetOf(2)
  pickSlot(policy, fleet, long())
  pickSlot(policy, fleet, long())
  vi.advanceTimersByTime(5_001)
  expect(pickSlot(policy, fleet, long())).toBe(1)
})

test('boundaries follow the observed sizes, so that each worker receives as many bytes', () => {
  const settings = { balanceAbsThreshold: 1_000_000_000 }
  const policy = new PolicyThread({ bucket: settings }).policy('bucket')
  const fleet = fleetOf(2)
  // All below 2 KiB, so initially all in the first bucket.
  for (let i = 0; i < 45; i++) pickSlot(policy, fleet, chatRequest('x'.repeat(i < 35 ? 300 : 900)))
  expect(pickSlot(policy, fleet, chatRequest('x'.repeat(900)))).toBe(0)
  vi.advanceTimersByTime(5_000)
  expect(pickSlot(policy, fleet, chatRequest('x'.repeat(900)))).toBe(1)
  expect(pickSlot(policy, fleet, chatRequest('x'.repeat(300)))).toBe(0)
})

test('the lightest available worker replaces an unavailable one', () => {
  const policy = new PolicyThread({ bucket: { balanceAbsThreshold: 5_000 } }).policy('bucket')
  const fleet = fleetOf(3)
  fleet[0].isAvailable = false
  expect(pickSlot(policy, fleet, short())).toBe(1)
  expect(pickSlot(policy, fleet, short())).toBe(2)
})

test('a prompt longer than the inspected part counts as long', () => {
  const policy = new PolicyThread({ bucket: { balanceAbsThreshold: 10_000_000 } }).policy('bucket')
  const fleet = fleetOf(4)
  expect(pickSlot(policy, fleet, chatRequest('x'.repeat(200_000)))).toBe(3)
  expect(pickSlot(policy, fleet, pickRequest({ body: '{}' }))).toBe(0)
})
