import { expect, test } from 'vitest'
import {
  countSlots,
  fleetOf,
  PolicyThread,
  pickRequest,
  seededRandom,
} from '../../../test/support/policy-fleet.ts'

test('random over 4 workers and 4000 requests keeps each within 15 % of 1000', () => {
  const policy = new PolicyThread().policy('random', { random: seededRandom(7) })
  const requests = Array.from({ length: 4_000 }, () => pickRequest())
  const counts = countSlots(policy, fleetOf(4), requests)
  expect(Object.keys(counts)).toHaveLength(4)
  for (const count of Object.values(counts)) {
    expect(count).toBeGreaterThan(850)
    expect(count).toBeLessThan(1_150)
  }
})
