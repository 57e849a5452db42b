/** Event ids for any chunks, and byte limits of tool server responses. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventSplitter } from '#kernel'
import { ByteLimitExceeded, hasEventId, streamLimit, wholeLimit } from './response-stream.ts'

function find(text: string, cuts: readonly number[]): boolean {
  const splitter = new EventSplitter()
  const bytes = Buffer.from(text)
  const borders = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  let isFound = false
  for (let i = 1; i < borders.length; i++)
    isFound ||= hasEventId(splitter.push(bytes.subarray(borders[i - 1], borders[i])))
  return isFound
}

test('an id line is found at the start of a line only, for any chunks', () => {
  const part = fc.constantFrom('id:', 'id', ':', 'i', 'd', '\n', '\r', 'data: id: 1', ' ', 'x')
  const cuts = fc.array(fc.nat())
  fc.assert(
    fc.property(fc.array(part), cuts, (parts, at) => {
      const text = `${parts.join('')}\n\n`
      const isThere = text.split(/[\n\r]/).some((line) => line.startsWith('id:'))
      expect(find(text, at)).toBe(isThere)
    }),
  )
})

const bytes = (text: string) => Buffer.from(text)

test('a non-streamed response is limited in bytes', () => {
  const limit = wholeLimit(10)
  limit.take(bytes('0123456789'))
  expect(() => limit.take(bytes('\n'))).toThrow(ByteLimitExceeded)
})

test('many small events cost more than their bytes', () => {
  const limit = streamLimit(100_000, () => 0)
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
