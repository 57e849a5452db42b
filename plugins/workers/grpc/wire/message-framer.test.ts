/** Messages are restored from any chunks. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FramingError, framed, MessageFramer } from './message-framer.ts'

const MAX = 1_000

function read(framer: MessageFramer, chunks: readonly Buffer[]): string[] {
  const messages: string[] = []
  for (const chunk of chunks) {
    framer.push(chunk)
    for (let message = framer.next(); message !== null; message = framer.next())
      messages.push(message.toString('hex'))
  }
  return messages
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...places.map((place) => place % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b)
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end))
}

describe('messages of a stream', () => {
  test('any chunking gives the same messages, and only complete ones', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 80 }), { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.nat(),
        (bodies, places, missing) => {
          const whole = Buffer.concat(bodies.map((body) => framed(Buffer.from(body))))
          const bytes = whole.subarray(0, whole.length - (missing % (whole.length + 1)))
          const expected: string[] = []
          let end = 0
          for (const body of bodies) {
            if (end + 5 + body.length > bytes.length) break
            end += 5 + body.length
            expected.push(Buffer.from(body).toString('hex'))
          }
          const framer = new MessageFramer(MAX)
          expect(read(framer, cut(bytes, places))).toEqual(expected)
          expect(framer.isCut).toBe(end < bytes.length)
        },
      ),
    )
  })

  test('messages are restored byte by byte', () => {
    const framer = new MessageFramer(MAX)
    const bytes = Buffer.concat([
      framed(Buffer.from('ab')),
      framed(Buffer.alloc(0)),
      framed(Buffer.from('c')),
    ])
    expect(
      read(
        framer,
        [...bytes].map((byte) => Buffer.from([byte])),
      ),
    ).toEqual(['6162', '', '63'])
  })

  test('a too long message is rejected by its head, for any split, and not buffered', () => {
    const head = Buffer.from([0, 0x7f, 0xff, 0xff, 0xff])
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 4 }), (places) => {
        const framer = new MessageFramer(MAX)
        expect(() => read(framer, cut(Buffer.concat([head, Buffer.alloc(1)]), places))).toThrow(FramingError)
      }),
    )
  })

  test('the maximum length is accepted, one byte more is rejected', () => {
    expect(read(new MessageFramer(3), [framed(Buffer.from('abc'))])).toEqual(['616263'])
    expect(() => read(new MessageFramer(3), [framed(Buffer.from('abcd'))])).toThrow(/4 bytes/)
  })

  test('a compressed message is rejected', () => {
    expect(() => read(new MessageFramer(MAX), [Buffer.from([1, 0, 0, 0, 0])])).toThrow(/compressed/)
  })
})
