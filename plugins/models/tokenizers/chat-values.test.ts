import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isDeeperThan } from './chat-values.ts'

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

test('nesting depth is detected for any JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(8), (value, levels) => {
      expect(isDeeperThan(levels, JSON.stringify(value))).toBe(depthOf(value) > levels)
    }),
  )
})

test('unclosed brackets are detected immediately', () => {
  expect(isDeeperThan(128, '['.repeat(30_000_000))).toBe(true)
  expect(isDeeperThan(128, JSON.stringify({ a: '['.repeat(1_000) }))).toBe(false)
})
