import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { backOffMs, RetryRules, type RetrySettings, retryAfterMs } from './retry.ts'

const CONFIG = {
  maxAttempts: 5,
  initialBackoffMs: 50,
  maxBackoffMs: 30_000,
  maxWaitMs: 1_000,
  backoffMultiplier: 1.5,
  jitterFactor: 0.2,
  statuses: [408, 429, 500, 502, 503, 504],
}
const rules = new RetryRules(CONFIG)
const middle = () => 0.5

describe('the back-off before another attempt', () => {
  test('grows by the multiplier from the initial value', () => {
    expect([1, 2, 3, 4].map((failed) => backOffMs(rules.kernel, failed, 0, middle))).toEqual([
      50, 75, 113, 169,
    ])
  })

  test('varies by the jitter in both directions, after the maximum', () => {
    const capped = { ...rules.kernel, maxBackoffMs: 100 }
    expect(backOffMs(capped, 40, 0, () => 0)).toBe(80)
    expect(backOffMs(capped, 40, 0, middle)).toBe(100)
    expect(backOffMs(capped, 40, 0, () => 0.999999999)).toBe(120)
  })

  test('never exceeds the longest timer', () => {
    const patient = { ...rules.kernel, initialBackoffMs: 2 ** 40, maxBackoffMs: 2 ** 41 }
    expect(backOffMs(patient, 1, 0, middle)).toBe(2 ** 31 - 1)
  })

  test('is the Retry-After of the worker, up to the maximum', () => {
    expect(backOffMs(rules.kernel, 1, 2_000, middle)).toBe(2_000)
    expect(backOffMs(rules.kernel, 1, 10, middle)).toBe(50)
    expect(backOffMs(rules.kernel, 1, 3_600_000, middle)).toBe(30_000)
  })

  const settings = fc
    .record({
      initialBackoffMs: fc.integer({ min: 1, max: 100_000 }),
      maxBackoffMs: fc.integer({ min: 1, max: 100_000 }),
      backoffMultiplier: fc.double({ min: 1, max: 100, noNaN: true }),
      jitterFactor: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    .map((given): RetrySettings => ({ ...rules.kernel, ...given }))
  const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

  test('stays within its bounds, and without jitter never decreases', () => {
    fc.assert(
      fc.property(
        settings,
        fc.integer({ min: 1, max: 2_000 }),
        fc.nat(200_000),
        draw,
        (given, failed, asked, at) => {
          const wait = backOffMs(given, failed, asked, () => at)
          expect(Number.isInteger(wait)).toBe(true)
          expect(wait).toBeGreaterThanOrEqual(Math.min(asked, given.maxBackoffMs))
          expect(wait).toBeLessThanOrEqual(Math.round(given.maxBackoffMs * (1 + given.jitterFactor)))
          const still = { ...given, jitterFactor: 0 }
          expect(backOffMs(still, failed + 1, 0, () => at)).toBeGreaterThanOrEqual(
            backOffMs(still, failed, 0, () => at),
          )
        },
      ),
    )
  })
})

describe('Retry-After (RFC 9110 §10.2.3)', () => {
  const NOW_MS = Date.parse('2026-03-01T10:00:00Z')

  test.each([
    ['3', 3_000],
    [' 0 ', 0],
    ['Sun, 01 Mar 2026 10:00:05 GMT', 5_000],
    ['Sun, 01 Mar 2026 09:00:00 GMT', 0],
    ['-1', 0],
    ['1.5', 0],
    ['2026', 2_026_000],
    ['soon', 0],
    ['', 0],
  ])('%o is %d ms', (value, expected) => {
    expect(retryAfterMs(value, NOW_MS)).toBe(expected)
  })

  test('a response without it is 0 ms', () => expect(retryAfterMs(undefined, NOW_MS)).toBe(0))
})

describe('settings of a worker', () => {
  test("override the kernel's, the rest is kept", () => {
    const own = { maxAttempts: 2, retryableStatuses: [418] }
    expect(rules.of(own)).toMatchObject({ maxAttempts: 2, initialBackoffMs: 50 })
    expect([418, 503].map((status) => rules.isFailure(status, own))).toEqual([true, false])
    expect([418, 503].map((status) => rules.isFailure(status, null))).toEqual([false, true])
    expect(rules.of(own)).toBe(rules.of(own))
  })

  test('disableRetry allows one attempt, whatever else is set', () => {
    expect(rules.of({ disableRetry: true, maxAttempts: 9 }).maxAttempts).toBe(1)
  })

  test('no list makes a success a failure', () => {
    expect(rules.isFailure(200, { retryableStatuses: [200] })).toBe(false)
  })
})
