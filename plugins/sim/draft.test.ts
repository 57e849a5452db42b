import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { draftGiven, draftProse, writeProse } from './draft.ts'
import { limitsOf } from './generation.ts'
import { Random, seedOf } from './random.ts'
import { splitTokens } from './tokens.ts'

const NO_LIMITS = limitsOf({}, null)

const prose = (limits: Partial<typeof NO_LIMITS> = {}, natural = 20, room = 1000) =>
  draftProse(new Random(1), natural, room, { ...NO_LIMITS, ...limits })

describe('the length of an answer', () => {
  test('without limits it is the natural one and ends by itself', () => {
    expect(prose()).toMatchObject({ completionTokens: 20, finishReason: 'stop', matchedStop: null })
  })

  test('a lower limit cuts it, and says length', () => {
    expect(prose({ maxTokens: 5 })).toMatchObject({ completionTokens: 5, finishReason: 'length' })
  })

  test('a higher limit changes nothing', () => {
    expect(prose({ maxTokens: 50 })).toMatchObject({ completionTokens: 20, finishReason: 'stop' })
  })

  test('ignore_eos goes on to the limit', () => {
    expect(prose({ maxTokens: 50, ignoreEos: true })).toMatchObject({
      completionTokens: 50,
      finishReason: 'length',
    })
  })

  test('a least length makes it longer', () => {
    expect(prose({ minTokens: 33 }).completionTokens).toBe(33)
  })

  test('a full context cuts it', () => {
    expect(prose({}, 20, 3)).toMatchObject({ completionTokens: 3, finishReason: 'length' })
  })
})

describe('stop strings', () => {
  test('the earliest one ends the text and is left out', () => {
    const draft = draftGiven('one two three four', 100, { ...NO_LIMITS, stop: ['four', 'three'] })
    expect(draft).toMatchObject({ text: 'one two ', finishReason: 'stop', matchedStop: 'three' })
    expect(draft.pieces.join('')).toBe('one two ')
  })

  test('tokens that were needed to see it count', () => {
    const draft = draftGiven('one two three four', 100, { ...NO_LIMITS, stop: ['three'] })
    expect(draft.completionTokens).toBe(4)
  })

  test('it may stay in the text', () => {
    const draft = draftGiven('one two three', 100, { ...NO_LIMITS, stop: ['two'], keepStop: true })
    expect(draft.text).toBe('one two')
  })

  test('whatever the text, no stop string is left in it and the pieces are the text', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 60 }),
        fc.array(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 4 }),
        (text, stop) => {
          const draft = draftGiven(text, 1000, { ...NO_LIMITS, stop })
          expect(draft.pieces.join('')).toBe(draft.text)
          expect(draft.pieces.length).toBeLessThanOrEqual(draft.completionTokens)
          expect(stop.some((one) => draft.text.includes(one))).toBe(false)
          expect(text.startsWith(draft.text)).toBe(true)
        },
      ),
    )
  })
})

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
