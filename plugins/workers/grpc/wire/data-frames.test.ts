/** Data of selected streams is extracted from any chunks, and all other bytes are passed on unchanged. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DataFrames, windowUpdate } from './data-frames.ts'

const TAPPED = [1, 3, 0x7fffffff]

interface Frame {
  readonly type: number
  readonly flags: number
  readonly id: number
  readonly body: Uint8Array
  /** Reserved bits of the stream id are ignored. */
  readonly reserved: boolean
}

const END_STREAM = 1
const PADDED = 8
const frames = fc.array(
  fc.record({
    type: fc.constantFrom(0, 0, 0, 1, 4, 6, 9, 0xa, 0xff),
    flags: fc.constantFrom(0, END_STREAM, PADDED, PADDED | END_STREAM, 4, 0xff),
    id: fc.constantFrom(0, 1, 2, 3, 5, 0x7fffffff),
    body: fc.uint8Array({ maxLength: 40 }),
    reserved: fc.boolean(),
  }),
  { maxLength: 12 },
)

function head(length: number, type: number, flags: number, id: number): Buffer {
  const bytes = Buffer.alloc(9)
  bytes.writeUIntBE(length, 0, 3)
  bytes[3] = type
  bytes[4] = flags
  bytes.writeUInt32BE(id, 5)
  return bytes
}

function toBytes({ type, flags, id, body, reserved }: Frame): Buffer {
  const bytes = Buffer.concat([head(body.length, type, flags, id), body])
  if (reserved) bytes[5] |= 0x80
  return bytes
}

/** The output in order; adjacent entries of one kind are merged. */
class Story {
  readonly lines: [who: string, hex: string, window: number][] = []

  add(who: string, bytes: Uint8Array, window = 0): void {
    const last = this.lines.at(-1)
    const hex = Buffer.from(bytes).toString('hex')
    if (last?.[0] === who) {
      last[1] += hex
      last[2] += window
    } else if (hex !== '' || window > 0) this.lines.push([who, hex, window])
  }
}

function expectedOf(list: readonly Frame[]): Story {
  const story = new Story()
  for (const one of list) {
    const { type, flags, id, body } = one
    if (type > 9) continue
    if (type !== 0 || !TAPPED.includes(id)) {
      story.add('passed', toBytes(one))
      continue
    }
    const isPadded = (flags & PADDED) !== 0 && body.length > 0
    const end = isPadded ? Math.max(1, body.length - body[0]) : body.length
    if (body.length > 0) story.add(String(id), body.subarray(isPadded ? 1 : 0, end), body.length)
    if ((flags & END_STREAM) !== 0) story.add('passed', head(0, 0, END_STREAM, id))
  }
  return story
}

function read(chunks: readonly Buffer[]): { story: Story; taken: number } {
  const story = new Story()
  let taken = 0
  const reader = new DataFrames(
    (bytes) => story.add('passed', bytes),
    (bytes) => {
      taken += bytes
    },
  )
  for (const id of TAPPED) reader.add(id, { take: (bytes, window) => story.add(String(id), bytes, window) })
  for (const chunk of chunks) reader.push(chunk)
  return { story, taken }
}

describe('frames of a connection', () => {
  test('any chunking gives the same data, drops extensions, and passes on other bytes in order', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(), { maxLength: 20 }), (list, places) => {
        const bytes = Buffer.concat(list.map(toBytes))
        const cuts = [...places.map((place) => place % (bytes.length + 1)), 0, bytes.length]
        cuts.sort((a, b) => a - b)
        const chunks = cuts.slice(1).map((end, at) => bytes.subarray(cuts[at], end))
        const { story, taken } = read(chunks)
        const expected = expectedOf(list)
        expect(story.lines).toEqual(expected.lines)
        expect(taken).toBe(expected.lines.reduce((sum, [, , window]) => sum + window, 0))
        const single = read([...bytes].map((byte) => Buffer.from([byte])))
        expect(single.story.lines).toEqual(expected.lines)
      }),
    )
  })

  test('a frame longer than the maximum is passed on completely, to be rejected', () => {
    const bytes = Buffer.concat([head(16_385, 0, 0, 1), Buffer.alloc(16_385, 7)])
    expect(read([bytes.subarray(0, 12), bytes.subarray(12)]).story.lines).toEqual([
      ['passed', bytes.toString('hex'), 0],
    ])
  })

  test('a stream removed within a frame gets the rest of it; later frames are passed on', () => {
    const story = new Story()
    const reader = new DataFrames(
      (bytes) => story.add('passed', bytes),
      () => {},
    )
    reader.add(1, { take: (bytes, window) => story.add('1', bytes, window) })
    const bytes = Buffer.concat([head(4, 0, 0, 1), Buffer.from('abcd')])
    reader.push(bytes.subarray(0, 11))
    reader.remove(1)
    reader.push(bytes.subarray(11))
    reader.push(bytes)
    expect(story.lines).toEqual([
      ['1', Buffer.from('abcd').toString('hex'), 4],
      ['passed', bytes.toString('hex'), 0],
    ])
  })

  test('a window update has the HTTP/2 format', () => {
    expect(windowUpdate(5, 65_536).toString('hex')).toBe('00000408000000000500010000')
  })
})
