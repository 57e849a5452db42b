/** Messages of in-flight requests. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeLoads, encodeLoads } from './load-message.ts'

const entry = fc.tuple(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.integer({ min: 1, max: 0xffff }))

test('the parts together have all loads, and only the first replaces earlier ones', () => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 50 }), (entries) => {
      const loads = new Map(entries)
      const [part, ...others] = encodeLoads(loads)
      expect(others).toEqual([])
      expect(decodeLoads(part)).toEqual({ isFirst: true, loads })
    }),
  )
  const many = new Map(Array.from({ length: 17_000 }, (_, i) => [i * 1e9, 1 + (i % 100)]))
  const parts = encodeLoads(many)
  expect(Math.max(...parts.map(({ length }) => length))).toBeLessThanOrEqual(65_536)
  const decoded = parts.map((part) => decodeLoads(part))
  expect(decoded.map((part) => part?.isFirst)).toEqual([true, false, false])
  expect(new Map(decoded.flatMap((part) => [...(part?.loads ?? [])]))).toEqual(many)
})

test('other versions and lengths are rejected', () => {
  const [part] = encodeLoads(new Map([[1, 2]]))
  expect(decodeLoads(part.subarray(1))).toBeNull()
  expect(decodeLoads(part.subarray(0, part.length - 1))).toBeNull()
  expect(decodeLoads(Buffer.alloc(0))).toBeNull()
  expect(decodeLoads(Buffer.from([2, 0]))).toBeNull()
  expect(decodeLoads(Buffer.from([1, 0]))).toEqual({ isFirst: true, loads: new Map() })
})
