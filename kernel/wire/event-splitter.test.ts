import fc from 'fast-check'
import { expect, test } from 'vitest'
import { computingMs } from '../../test/support/best-of.ts'
import { EventCounter, EventSplitter, hasCarriageReturn, nextEventEnd } from './event-splitter.ts'

/** Reference implementation: finds events line by line. */
function eventsOf(text: string): { whole: string; rest: string } {
  const border = /(?:\r\n|\n|\r(?!\n|$))(?:\r\n|\n|\r(?!\n|$))/g
  let end = 0
  for (let match = border.exec(text); match !== null; match = border.exec(text)) {
    end = match.index + match[0].length
    border.lastIndex = match.index + 1
  }
  return { whole: text.slice(0, end), rest: text.slice(end) }
}

/** Events of non-empty lines, with either line end, perhaps with an unfinished event after them. */
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

/** Splits bytes at the given positions. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const borders = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...borders].map((from, index) => bytes.subarray(from, borders[index] ?? bytes.length))
}

test('any chunking gives the same complete events and the same rest, byte for byte', () => {
  fc.assert(
    fc.property(streams, fc.array(fc.nat(400), { maxLength: 12 }), (text, places) => {
      const splitter = new EventSplitter()
      const pieces = cut(Buffer.from(text), places).map((piece) => splitter.push(piece).toString())
      const whole = pieces.join('')
      const rest = splitter.takeRest().toString()
      expect(whole + rest).toBe(text)
      expect({ whole, rest }).toEqual(eventsOf(text))
    }),
    { numRuns: 500 },
  )
})

test('lines that end with a bare CR are supported', () => {
  const splitter = new EventSplitter()
  const events = ['data: 1\r', '\rdata: 2'].map((piece) => splitter.push(Buffer.from(piece)).toString())
  expect(events.join('')).toBe('data: 1\r\r')
})

test('each returned piece ends at an event boundary', () => {
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

test('an event is returned with its last byte, not one later', () => {
  const splitter = new EventSplitter()
  expect(splitter.push(Buffer.from('data: 1\n')).length).toBe(0)
  expect(splitter.waitingBytes).toBe(8)
  expect(splitter.push(Buffer.from('\ndata: 2')).toString()).toBe('data: 1\n\n')
  expect(splitter.takeRest().toString()).toBe('data: 2')
})

test('what follows an event is kept when the memory of the chunk is used again', () => {
  const splitter = new EventSplitter()
  const chunk = Buffer.from('data: 1\n\ndata')
  splitter.push(chunk)
  chunk.fill(0)
  expect(splitter.push(Buffer.from(': 2\n\n')).toString()).toBe('data: 2\n\n')
})

test('any bytes in any chunks: the same complete events as in one chunk', () => {
  const bytes = fc
    .array(fc.constantFrom('\n', '\r', 'a', ':'), { maxLength: 40 })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(bytes, fc.array(fc.nat(40), { maxLength: 12 }), (text, places) => {
      const whole = new EventSplitter()
      const pieces = new EventSplitter()
      const once = whole.push(Buffer.from(text)).toString()
      const parts = cut(Buffer.from(text), places).map((piece) => pieces.push(piece).toString())
      expect(parts.join('')).toBe(once)
      expect(pieces.takeRest().toString()).toBe(whole.takeRest().toString())
    }),
    { numRuns: 2_000 },
  )
})

test('event counts are equal in one chunk and in many', () => {
  fc.assert(
    fc.property(streams, fc.array(fc.nat(400), { maxLength: 12 }), (text, places) => {
      const pieces = new EventCounter()
      const counts = cut(Buffer.from(text), places).map((piece) => pieces.push(piece))
      const total = counts.reduce((sum, count) => sum + count, 0)
      expect(total).toBe(new EventCounter().push(Buffer.from(text)))
      expect(total).toBe(eventsIn(Buffer.from(text)).length)
    }),
  )
})

test('complete events are split at their ends', () => {
  expect(eventsIn(Buffer.from('data: 1\n\n\ndata: 2\r\n\r\ndata: 3\r\r'))).toEqual([
    'data: 1\n\n\n',
    'data: 2\r\n\r\n',
    'data: 3\r\r',
  ])
  expect(eventsIn(Buffer.from('data: 1\n\n\n\ndata: 2\n\n'))).toEqual(['data: 1\n\n\n\n', 'data: 2\n\n'])
  expect(nextEventEnd(Buffer.from('data: 1\n'), 0, false)).toBe(-1)
})

test('empty lines alone are one event, however many arrive', () => {
  for (const line of ['\n', '\r\n', '\r']) expect(eventsIn(Buffer.from(line.repeat(10_000)))).toHaveLength(1)
})

test('an event of 1 MB that arrives byte by byte takes linear time', () => {
  const splitter = new EventSplitter()
  const byte = Buffer.from('a')
  const tookMs = computingMs(() => {
    for (let i = 0; i < 1_048_576; i++) splitter.push(byte)
  })
  expect(tookMs).toBeLessThan(2_000)
  expect(splitter.push(Buffer.from('\n\n')).length).toBe(1_048_578)
})

function eventsIn(bytes: Buffer): string[] {
  const events: string[] = []
  const hasCr = hasCarriageReturn(bytes)
  for (let from = 0, end = nextEventEnd(bytes, 0, hasCr); end >= 0; end = nextEventEnd(bytes, end, hasCr)) {
    events.push(bytes.toString('utf8', from, end))
    from = end
  }
  return events
}
