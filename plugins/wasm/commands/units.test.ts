/** Human-readable units. */
import { expect, test } from 'vitest'
import { plural, showBytes, showMs, spreadOf } from './units.ts'

test.each([
  [0, '0 bytes'],
  [1023, '1023 bytes'],
  [1536, '1.5 KiB'],
  [13_400, '13 KiB'],
  [67_108_864, '64 MiB'],
])('%d bytes are %s', (bytes, text) => expect(showBytes(bytes)).toBe(text))

test('percentiles are measured times', () => {
  const times = Array.from({ length: 200 }, (_, at) => 200 - at)
  expect(spreadOf(times)).toEqual({ count: 200, p50Ms: 100, p99Ms: 198, maxMs: 200 })
  expect(spreadOf([7])).toEqual({ count: 1, p50Ms: 7, p99Ms: 7, maxMs: 7 })
  expect(spreadOf([])).toEqual({ count: 0, p50Ms: 0, p99Ms: 0, maxMs: 0 })
})

test('small times keep their microseconds', () => {
  expect([showMs(0.0114), showMs(12.34)]).toEqual(['0.011', '12.3'])
  expect([plural(1, 'step'), plural(2, 'step')]).toEqual(['1 step', '2 steps'])
})
