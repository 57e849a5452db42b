/** The choice of a target: shares follow the weights, and keys are stable. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chooseByWeight, shareOfKey } from './thread-targets.ts'

const weights = fc
  .array(fc.nat(1_000), { minLength: 1, maxLength: 8 })
  .filter((all) => all.some((weight) => weight > 0))

test('evenly spread shares choose each target in proportion to its weight, and none of weight 0', () => {
  fc.assert(
    fc.property(weights, (all) => {
      const total = all.reduce((sum, weight) => sum + weight, 0)
      const counts = all.map(() => 0)
      for (let at = 0; at < total; at++) counts[chooseByWeight(all, (at + 0.5) / total)]++
      expect(counts).toEqual(all)
    }),
  )
})

test('the largest share chooses a target of weight above 0', () => {
  fc.assert(fc.property(weights, (all) => all[chooseByWeight(all, 1 - Number.EPSILON / 2)] > 0))
})

test('keys spread evenly, and a key has one share', () => {
  const shares = Array.from({ length: 10_000 }, (_, at) => shareOfKey(`assistant\nauth:team-${at}`))
  expect(shareOfKey('assistant\nauth:team-7')).toBe(shares[7])
  const below = shares.filter((share) => share < 0.1).length
  // Five standard deviations.
  expect(Math.abs(below - 1_000)).toBeLessThan(150)
  expect(shares.every((share) => share >= 0 && share < 1)).toBe(true)
})
