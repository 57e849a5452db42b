import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readEvent, writeEvent } from './sse-event.ts'

const read = (text: string) => readEvent(Buffer.from(text))

test('fields are parsed as in the standard', () => {
  expect(read('data: {"a":1}\n\n')).toEqual({ name: null, data: '{"a":1}', otherFields: '' })
  expect(read('event: x\nid: 7\ndata:one\ndata:  two\nretry: 3\nother: y\n\n')).toEqual({
    name: 'x',
    data: 'one\n two',
    otherFields: 'id: 7\nretry: 3\n',
  })
  expect(read('data\r\n\r\n')).toEqual({ name: null, data: '', otherFields: '' })
  expect(read('data: 1\rdata: 2\r\r')?.data).toBe('1\n2')
  expect(read('data: 1')?.data).toBe('1')
})

test('comments and events without data are dropped', () => {
  for (const text of [':\n\n', 'event: x\n\n', '\n', '', 'dataset: 1\n\n']) expect(read(text)).toBeNull()
})

test('encoded events decode to the same text', () => {
  const text = fc.string({ unit: fc.constantFrom('a', ' ', ':', '\n', 'ü', 'data: ') })
  fc.assert(
    fc.property(
      text,
      fc.constantFrom(null, 'delta'),
      fc.constantFrom('', 'id: 7\n'),
      (data, name, fields) => {
        expect(read(writeEvent({ name, data }, fields))).toEqual({ name, data, otherFields: fields })
      },
    ),
  )
})
