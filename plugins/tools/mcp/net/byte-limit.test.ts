/** Byte limits of tool server responses. */
import { expect, test } from 'vitest'
import { ByteLimitExceeded, streamLimit, wholeLimit } from './byte-limit.ts'

const bytes = (text: string) => Buffer.from(text)

test('a non-streamed response is limited in bytes', () => {
  const limit = wholeLimit(10, false)
  limit.take(bytes('0123456789'))
  expect(() => limit.take(bytes('\n'))).toThrow(ByteLimitExceeded)
})

test('many small events cost more than their bytes', () => {
  const limit = wholeLimit(100_000, true)
  for (let event = 0; event < 45; event++) limit.take(bytes('data: x\n\n'))
  expect(() => limit.take(bytes('\n\n'.repeat(10)))).toThrow(ByteLimitExceeded)
})

test('a slow stream is not limited in time', () => {
  let nowMs = 0
  const limit = streamLimit(10_000, () => nowMs)
  for (let minute = 0; minute < 50; minute++) {
    limit.take(bytes(`data: ${'x'.repeat(7_000)}\n\n`))
    nowMs += 60_000
  }
})

test('a flooding stream is aborted', () => {
  const limit = streamLimit(10_000, () => 0)
  limit.take(bytes(`data: ${'x'.repeat(3_000)}\n\n`))
  expect(() => limit.take(bytes(`data: ${'x'.repeat(6_000)}\n\n`))).toThrow(ByteLimitExceeded)
})
