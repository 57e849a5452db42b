import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countTokens, splitTokens, tokenId, VOCABULARY_SIZE } from './tokens.ts'

describe('the tokenizer', () => {
  test('joined tokens give the text back, and the count is their number', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const tokens = splitTokens(text)
        expect(tokens.join('')).toBe(text)
        expect(countTokens(text)).toBe(tokens.length)
        expect(tokens.every((token) => token.length > 0)).toBe(true)
      }),
    )
  })

  test('no token is cut inside a character, so each one survives UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        const whole = splitTokens(text).map((token) => Buffer.from(token).toString())
        expect(whole.join('')).toBe(Buffer.from(text).toString())
      }),
    )
  })

  test('a short word and the space before it are one token, a long word is several', () => {
    expect(splitTokens('The cat sat. Understand 12345!')).toEqual([
      'The',
      ' cat',
      ' sat',
      '.',
      ' Unde',
      'rsta',
      'nd',
      ' 1234',
      '5',
      '!',
    ])
  })

  test('ids are stable and within the vocabulary', () => {
    expect(tokenId(' cat')).toBe(tokenId(' cat'))
    fc.assert(
      fc.property(fc.string(), (token) => {
        expect(tokenId(token)).toBeGreaterThanOrEqual(0)
        expect(tokenId(token)).toBeLessThan(VOCABULARY_SIZE)
      }),
    )
  })
})
