import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StreamTail } from '#kernel'
import { streamCompletionCheck } from './stream-completion.ts'

test('the check of a stream is independent of the previous one', () => {
  const open = streamCompletionCheck((tail) => (tail.toString().endsWith('[DONE]') ? 'complete' : 'cut'))
  const [one, beside] = [open(), open()]
  one.pass(Buffer.from('data: [DO'))
  beside.pass(Buffer.from('data: a'))
  one.pass(Buffer.from('NE]'))
  expect([one.end(), beside.end()]).toEqual(['complete', 'cut'])
  one.leave()
  beside.leave()
  for (let i = 0; i < 3; i++) expect(open().end()).toBe('cut')
})

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
