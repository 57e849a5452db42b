import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Random, seedOf } from './random.ts'
import { writeProse } from './text.ts'
import { splitTokens } from './tokens.ts'

test('prose has exactly the tokens that were asked for, as the tokenizer counts them', () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat({ max: 400 }), (seed, count) => {
      const tokens = writeProse(new Random(seed), count)
      expect(tokens).toHaveLength(count)
      expect(splitTokens(tokens.join(''))).toEqual(tokens)
    }),
  )
})

test('the same seed gives the same prose, another seed another', () => {
  const prose = (seed: number) => writeProse(new Random(seed), 64).join('')
  expect(prose(7)).toBe(prose(7))
  expect(prose(7)).not.toBe(prose(8))
})

test('a longer answer begins with the shorter one', () => {
  const short = writeProse(new Random(3), 20)
  expect(writeProse(new Random(3), 50).slice(0, 20)).toEqual(short)
})

test('the border between the parts of a seed counts', () => {
  expect(seedOf('ab', 'c')).not.toBe(seedOf('a', 'bc'))
  expect(seedOf(1, 'x')).toBe(seedOf(1, 'x'))
})

test('chance stays within its bounds', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 1000 }), (seed, limit) => {
      const drawn = new Random(seed).below(limit)
      expect(Number.isInteger(drawn) && drawn >= 0 && drawn < limit).toBe(true)
    }),
  )
})
