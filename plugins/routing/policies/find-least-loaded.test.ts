import { expect, test } from 'vitest'
import { fleetOf, fleetWorker, PolicyThread, viewOf } from '../../../test/support/policy-fleet.ts'
import { fewestInFlight, findLeastLoaded, mostInFlight } from './find-least-loaded.ts'

const { counters } = new PolicyThread().state

test('of a small fleet all workers are inspected', () => {
  const fleet = [5, 3, 9, 3].map((inFlight, slot) => fleetWorker(slot, { inFlight }))
  expect(findLeastLoaded(viewOf(fleet), counters)).toBe(1)
  expect([fewestInFlight, mostInFlight]).toEqual([3, 9])
})

test('of a large fleet the next workers in rotation are inspected', () => {
  const fleet = fleetOf(1_000)
  for (const worker of fleet) worker.inFlight = 2
  const idle = new Set([100, 400, 700, 990])
  for (const slot of idle) fleet[slot].inFlight = 0
  const view = viewOf(fleet)
  const found = new Set<number>()
  // Four windows cover all workers.
  for (let i = 0; i < 8; i++) found.add(findLeastLoaded(view, counters))
  expect([...found].filter((index) => idle.has(index)).sort((a, b) => a - b)).toEqual([...idle])
  expect([...found].every((index) => index < 1_000)).toBe(true)
})
