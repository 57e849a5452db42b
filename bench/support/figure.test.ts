/** Medians, verdicts, and the chunked decoder of the load clients. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ChunkedDecoder } from '../../test/support/chunked-decoder.ts'
import { median, verdict } from './figure.ts'

const figure = (values: number[], target?: number, withheld?: string) => ({
  name: 'figure',
  unit: 'ms',
  values,
  target,
  withheld,
})

test('the median of an even number of rounds is the mean of the middle two', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([9, 1, 5])).toBe(5)
})

test('one slow round among three does not miss a target', () => {
  expect(verdict(figure([1, 1, 9], 2))).toBe('met')
  expect(verdict(figure([1, 9, 9], 2))).toBe('missed')
})

test('a target may be a lower bound', () => {
  const hitRate = (values: number[]) => ({ name: 'hit rate', unit: '', values, atLeast: 0.6 })
  expect(verdict(hitRate([0.6, 0.7, 0.5]))).toBe('met')
  expect(verdict(hitRate([0.59]))).toBe('missed')
  expect(verdict(hitRate([Number.NaN]))).toBe('missed')
})

test('a withheld figure is neither met nor missed', () => {
  expect(verdict(figure([], 2, 'the load client was the bottleneck'))).toBe('withheld')
})

test('the chunked decoder returns the same body for every split into reads', () => {
  const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 })
  fc.assert(
    fc.property(chunks, fc.integer({ min: 1, max: 30 }), (parts, readBytes) => {
      const coded = [...parts, new Uint8Array()].map((part) =>
        Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]),
      )
      const bytes = Buffer.concat(coded)
      const body: Buffer[] = []
      const decoder = new ChunkedDecoder((part) => body.push(Buffer.from(part)))
      for (let at = 0; at < bytes.length; at += readBytes) decoder.push(bytes.subarray(at, at + readBytes))
      expect(decoder.isDone).toBe(true)
      expect(Buffer.concat(body)).toEqual(Buffer.concat(parts))
    }),
  )
})
