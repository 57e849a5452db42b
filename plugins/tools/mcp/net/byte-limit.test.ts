/** Limits of what a tool server may send. */
import { expect, test } from 'vitest'
import { streamLimit, TooMuchData, wholeLimit } from './byte-limit.ts'

const bytes = (text: string) => Buffer.from(text)

test('a whole answer ends at its limit', () => {
  const limit = wholeLimit(10, false)
  limit.take(bytes('0123456789'))
  expect(() => limit.take(bytes('\n'))).toThrow(TooMuchData)
})

test('many small events cost more than their bytes', () => {
  const limit = wholeLimit(100_000, true)
  for (let event = 0; event < 45; event++) limit.take(bytes('data: x\n\n'))
  expect(() => limit.take(bytes('\n\n'.repeat(10)))).toThrow(TooMuchData)
})

test('a stream may go on for ever as long as it goes slowly', () => {
  let nowMs = 0
  const limit = streamLimit(10_000, () => nowMs)
  for (let minute = 0; minute < 50; minute++) {
    limit.take(bytes(`data: ${'x'.repeat(7_000)}\n\n`))
    nowMs += 60_000
  }
})

test('a stream that floods is cut', () => {
  const limit = streamLimit(10_000, () => 0)
  limit.take(bytes(`data: ${'x'.repeat(3_000)}\n\n`))
  expect(() => limit.take(bytes(`data: ${'x'.repeat(6_000)}\n\n`))).toThrow(TooMuchData)
})
