/** The frame codec of the ABI: whatever goes in comes out, and what is no frame is refused. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeFrame, encodeFrame, FRAME_HEAD_BYTES } from './abi.ts'

const head = fc.jsonValue({ stringUnit: 'grapheme' })
const body = fc.uint8Array({ maxLength: 300 })

test('a frame gives back its head and its body', () => {
  fc.assert(
    fc.property(head, body, (value, bytes) => {
      const decoded = decodeFrame(encodeFrame(value, bytes))
      expect(decoded.head).toEqual(JSON.parse(JSON.stringify(value)))
      expect(Uint8Array.from(decoded.body)).toEqual(Uint8Array.from(bytes))
    }),
  )
})

test('a frame owns its memory: a host that stores the buffer behind it stores the frame', () => {
  fc.assert(
    fc.property(head, body, (value, bytes) => {
      const frame = encodeFrame(value, bytes)
      expect(frame.buffer.byteLength).toBe(frame.length)
    }),
  )
})

test('a frame is read wherever it lies in a larger buffer', () => {
  fc.assert(
    fc.property(head, body, fc.nat(20), (value, bytes, offset) => {
      const frame = encodeFrame(value, bytes)
      const larger = new Uint8Array(frame.length + offset + 7)
      larger.set(frame, offset)
      const decoded = decodeFrame(larger.subarray(offset, offset + frame.length))
      expect(Uint8Array.from(decoded.body)).toEqual(Uint8Array.from(bytes))
    }),
  )
})

test('a frame that is cut short is refused', () => {
  fc.assert(
    fc.property(head, (value) => {
      const frame = encodeFrame(value)
      for (let length = 0; length < frame.length; length++) {
        expect(() => decodeFrame(frame.subarray(0, length))).toThrow(RangeError)
      }
    }),
    { numRuns: 20 },
  )
})

test('any bytes are a frame, a RangeError or a SyntaxError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      try {
        const { body } = decodeFrame(bytes)
        expect(body.length).toBeLessThanOrEqual(bytes.length - FRAME_HEAD_BYTES)
      } catch (cause) {
        expect(['RangeError', 'SyntaxError']).toContain((cause as Error).name)
      }
    }),
  )
})
