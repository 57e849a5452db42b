/** Pooled blocks are large enough, bounded, and used by one request at a time. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BodyPool, MAX_POOLED_BYTES, MIN_POOLED_BYTES } from './body-memory.ts'

test('blocks fit the requested size, and sizes outside the range are not pooled', () => {
  const pool = new BodyPool()
  for (const bytes of [MIN_POOLED_BYTES, 16_385, 32_768, 32_769, 100_000, MAX_POOLED_BYTES]) {
    expect(pool.take(bytes)?.length).toBeGreaterThanOrEqual(bytes)
    expect(pool.take(bytes)?.length).toBeLessThan(2 * bytes)
  }
  expect(pool.take(MIN_POOLED_BYTES - 1)).toBeNull()
  expect(pool.take(MAX_POOLED_BYTES + 1)).toBeNull()
})

test('a block is never handed out twice', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), fc.integer({ min: MIN_POOLED_BYTES, max: 200_000 }))),
      (steps) => {
        const pool = new BodyPool()
        const held: Buffer[] = []
        for (const [gives, bytes] of steps) {
          if (gives && held.length > 0) pool.give(held.pop() as Buffer)
          else held.push(pool.take(bytes) as Buffer)
          expect(new Set(held).size).toBe(held.length)
        }
      },
    ),
  )
})
