/** The token bucket in one word, compared with a bucket that counts tokens. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  bucketPerMinute,
  bucketPerSecond,
  chargeTokens,
  takeTokens,
  tokensLeft,
  toRetryAfterSec,
} from './token-bucket.ts'

const SECOND = 1_000_000_000n

const word = () => new BigInt64Array(new SharedArrayBuffer(8))

describe('a token bucket', () => {
  test('holds its burst, refills at its rate, and returns the exact wait', () => {
    const cells = word()
    const size = bucketPerSecond(2, 3)
    for (let i = 0; i < 3; i++) expect(takeTokens(cells, 0, size, 1, SECOND)).toBe(0n)
    expect(takeTokens(cells, 0, size, 1, SECOND)).toBe(SECOND / 2n)
    expect(takeTokens(cells, 0, size, 1, SECOND + SECOND / 2n - 1n)).toBe(1n)
    expect(takeTokens(cells, 0, size, 1, SECOND + SECOND / 2n)).toBe(0n)
  })

  test('sixty per minute pass at once, the next waits a second', () => {
    const cells = word()
    const size = bucketPerMinute(60)
    for (let i = 0; i < 60; i++) expect(takeTokens(cells, 0, size, 1, 5n * SECOND)).toBe(0n)
    expect(toRetryAfterSec(takeTokens(cells, 0, size, 1, 5n * SECOND))).toBe(1)
    expect(toRetryAfterSec(takeTokens(cells, 0, size, 7, 5n * SECOND))).toBe(7)
  })

  test('debt is repaid before further tokens are given', () => {
    const cells = word()
    const size = bucketPerMinute(60)
    chargeTokens(cells, 0, size, 90, SECOND)
    expect(tokensLeft(cells[0], size, SECOND)).toBe(-30)
    expect(takeTokens(cells, 0, size, 1, SECOND)).toBe(31n * SECOND)
  })

  test('a refund never exceeds the bucket size', () => {
    const cells = word()
    const size = bucketPerMinute(10)
    chargeTokens(cells, 0, size, -5, 100n * SECOND)
    expect(tokensLeft(cells[0], size, 100n * SECOND)).toBe(10)
    for (let i = 0; i < 10; i++) expect(takeTokens(cells, 0, size, 1, 100n * SECOND)).toBe(0n)
    expect(takeTokens(cells, 0, size, 1, 100n * SECOND)).toBeGreaterThan(0n)
  })

  test('never gives more than burst and rate allow, for any sequence of requests', () => {
    const request = fc.record({ afterMs: fc.nat({ max: 3_000 }), tokens: fc.integer({ min: 1, max: 8 }) })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.array(request, { maxLength: 60 }), (rate, requests) => {
        const cells = word()
        const size = bucketPerSecond(rate, 10)
        let level = 10
        let nowMs = 1_000
        for (const { afterMs, tokens } of requests) {
          nowMs += afterMs
          level = Math.min(10, level + (afterMs * rate) / 1_000)
          const passed = takeTokens(cells, 0, size, tokens, BigInt(nowMs) * 1_000_000n) === 0n
          // The rounding error of a token's time is less than a billionth.
          if (Math.abs(level - tokens) > 1e-5) expect(passed).toBe(level >= tokens)
          if (passed) level -= tokens
        }
      }),
    )
  })
})
