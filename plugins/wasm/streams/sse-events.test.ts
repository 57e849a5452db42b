import fc from 'fast-check'
import { expect, test } from 'vitest'
import { writeEvent } from '#shared'
import { readBlocks } from './sse-events.ts'

const lineEnd = fc.constantFrom('\n', '\r\n', '\r')
const text = fc.string({ unit: fc.constantFrom('a', 'ü', '✓', ' ', ':', '{', '"', '\\') })
const field = fc.oneof(
  text.map((value) => `data: ${value}`),
  text.map((value) => `data:${value}`),
  text.map((value) => `: ${value}`),
  fc.constantFrom('event: named', 'id: 7', 'retry: 3', 'data', 'unknown: x'),
)

/** Event streams as servers may write them, with one kind of line end each. */
const stream = fc
  .tuple(lineEnd, fc.array(fc.array(field, { minLength: 1, maxLength: 4 }), { maxLength: 6 }))
  .map(([end, events]) => events.map((lines) => lines.map((line) => line + end).join('') + end).join(''))

test('the blocks joined are the bytes read', () => {
  fc.assert(
    fc.property(stream, (given) => {
      expect(Buffer.concat(readBlocks(Buffer.from(given)).map(({ bytes }) => bytes)).toString()).toBe(given)
    }),
  )
})

test('a written event is read back unchanged', () => {
  const data = fc.array(text, { minLength: 1, maxLength: 3 }).map((lines) => lines.join('\n'))
  const name = fc.option(fc.constantFrom('message_start', 'a b', 'ü'))
  fc.assert(
    fc.property(name, data, (name, data) => {
      const blocks = readBlocks(Buffer.from(writeEvent({ name, data })))
      expect(blocks).toHaveLength(1)
      expect(blocks[0].event).toEqual({ name, data })
    }),
  )
})

test('comments, [DONE] and blocks without data are not events', () => {
  const blocks = readBlocks(Buffer.from(': hi\n\nevent: x\n\ndata: [DONE]\n\ndata: 1\n\n'))
  expect(blocks.map(({ event }) => event)).toEqual([null, null, null, { name: null, data: '1' }])
  expect(blocks.map(({ isDone }) => isDone)).toEqual([false, false, true, false])
})

test('any line end inside data starts a new data line', () => {
  expect(writeEvent({ name: null, data: 'a\r\nb\rc\nd' })).toBe('data: a\ndata: b\ndata: c\ndata: d\n\n')
})

test('an incomplete block is passed through', () => {
  const blocks = readBlocks(Buffer.from('data: 1\n\ndata: 2\n'))
  expect(blocks.map(({ event }) => event)).toEqual([{ name: null, data: '1' }, null])
})
