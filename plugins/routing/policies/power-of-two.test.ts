import { expect, test } from 'vitest'
import {
  countSlots,
  engineLoad,
  fleetOf,
  fleetWorker,
  PolicyThread,
  pickRequest,
} from '../../../test/support/policy-fleet.ts'

const hundred = Array.from({ length: 100 }, () => pickRequest())

test('with reports of 0.9 and 0.1 the second is always picked, whatever is in flight', () => {
  const policy = new PolicyThread().policy('power_of_two')
  const full = fleetWorker(0, { load: engineLoad({ kvUsage: 0.9 }) })
  const empty = fleetWorker(1, { inFlight: 50, load: engineLoad({ kvUsage: 0.1 }) })
  expect(countSlots(policy, [full, empty], hundred)).toEqual({ 1: 100 })
})

test('without reports the worker with fewer requests in flight is picked', () => {
  const policy = new PolicyThread().policy('power_of_two')
  expect(
    countSlots(policy, [fleetWorker(0, { inFlight: 2 }), fleetWorker(1, { inFlight: 3 })], hundred),
  ).toEqual({
    0: 100,
  })
})

test('with a report of one worker only, requests in flight are compared', () => {
  const policy = new PolicyThread().policy('power_of_two')
  const reporting = fleetWorker(0, { inFlight: 1, load: engineLoad({ kvUsage: 0.99 }) })
  const silent = fleetWorker(1, { inFlight: 2 })
  expect(countSlots(policy, [reporting, silent], hundred)).toEqual({ 0: 100 })
  // A report without KV memory does not count.
  silent.load = engineLoad({ queuedTokens: 5 })
  expect(countSlots(policy, [reporting, silent], hundred)).toEqual({ 0: 100 })
})

test('the worst of many is never picked, all others are', () => {
  const policy = new PolicyThread().policy('power_of_two')
  const fleet = fleetOf(4)
  fleet[2].inFlight = 9
  const counts = countSlots(
    policy,
    fleet,
    Array.from({ length: 600 }, () => pickRequest()),
  )
  expect(Object.keys(counts)).toEqual(['0', '1', '3'])
})
