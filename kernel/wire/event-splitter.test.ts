import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventSplitter } from './event-splitter.ts'

/** Events as the slow and certain way finds them: line by line. */
function eventsOf(text: string): { whole: string; rest: string } {
  const border = /(?:\r\n|\n|\r(?!\n|$))(?:\r\n|\n|\r(?!\n|$))/g
  let end = 0
  for (let match = border.exec(text); match !== null; match = border.exec(text)) {
    end = match.index + match[0].length
    border.lastIndex = match.index + 1
  }
  return { whole: text.slice(0, end), rest: text.slice(end) }
}

/** Events of lines that are not empty, with either line end, and perhaps half an event after them. */
const lineEnd = fc.constantFrom('\n', '\r\n')
const lines = fc
  .array(fc.tuple(fc.constantFrom('data: a', 'event: x', ':', 'é'), lineEnd), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.flat().join(''))
const streams = fc
  .tuple(
    fc.array(fc.tuple(lines, lineEnd), { maxLength: 8 }),
    fc.constantFrom('', 'data: half', 'data: half\n'),
  )
  .map(([events, rest]) => events.flat().join('') + rest)

/** Cuts bytes at the given places, in any number of pieces. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const borders = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...borders].map((from, index) => bytes.subarray(from, borders[index] ?? bytes.length))
}

test('any chunking gives the same whole events and the same rest, byte for byte', () => {
  fc.assert(
    fc.property(streams, fc.array(fc.nat(400), { maxLength: 12 }), (text, places) => {
      const splitter = new EventSplitter()
      const pieces = cut(Buffer.from(text), places).map((piece) => splitter.push(piece))
      const whole = Buffer.concat(pieces).toString()
      const rest = splitter.takeRest().toString()
      expect(whole + rest).toBe(text)
      expect({ whole, rest }).toEqual(eventsOf(text))
    }),
    { numRuns: 500 },
  )
})

test('lines that end with a bare CR make events too', () => {
  const splitter = new EventSplitter()
  const events = Buffer.concat([
    splitter.push(Buffer.from('data: 1\r')),
    splitter.push(Buffer.from('\rdata: 2')),
  ])
  expect(events.toString()).toBe('data: 1\r\r')
})

test('each piece given back ends with the end of an event', () => {
  fc.assert(
    fc.property(streams, fc.array(fc.nat(400), { maxLength: 12 }), (text, places) => {
      const splitter = new EventSplitter()
      for (const piece of cut(Buffer.from(text), places)) {
        const events = splitter.push(piece).toString()
        expect(events === '' || /(\n|\r)(\r\n|\n|\r)$/.test(events)).toBe(true)
      }
    }),
  )
})

test('an event is given back with its last byte, not one later', () => {
  const splitter = new EventSplitter()
  expect(splitter.push(Buffer.from('data: 1\n')).length).toBe(0)
  expect(splitter.waitingBytes).toBe(8)
  expect(splitter.push(Buffer.from('\ndata: 2')).toString()).toBe('data: 1\n\n')
  expect(splitter.takeRest().toString()).toBe('data: 2')
})

test('what is given back is not changed by the chunk it came in', () => {
  const chunk = Buffer.from('data: 1\n\n')
  const events = new EventSplitter().push(chunk)
  chunk.fill(0)
  expect(events.toString()).toBe('data: 1\n\n')
})
