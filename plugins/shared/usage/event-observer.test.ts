import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StreamTail } from '#kernel'

test('the last bytes of a stream, for any chunks', () => {
  const chunk = fc.uint8Array({ maxLength: 20 })
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 30 }), fc.integer({ min: 1, max: 8 }), (chunks, size) => {
      const tail = new StreamTail(size)
      for (const bytes of chunks) tail.push(Buffer.from(bytes))
      const whole = Buffer.concat(chunks)
      expect(tail.bytes()).toEqual(whole.subarray(Math.max(0, whole.length - size)))
    }),
  )
})
