/** Event ids, for any chunks. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EventIdSearch } from './response-stream.ts'

function find(text: string, cuts: readonly number[]): boolean {
  const line = new EventIdSearch()
  const bytes = Buffer.from(text)
  const borders = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  for (let i = 1; i < borders.length; i++) line.read(bytes.subarray(borders[i - 1], borders[i]))
  return line.isFound
}

test('an id line is found at the start of a line only, for any chunks', () => {
  const part = fc.constantFrom('id:', 'id', ':', 'i', 'd', '\n', '\r', 'data: id: 1', ' ', 'x')
  const cuts = fc.array(fc.nat())
  fc.assert(
    fc.property(fc.array(part), cuts, (parts, at) => {
      const text = parts.join('')
      const isThere = text.split(/[\n\r]/).some((line) => line.startsWith('id:'))
      expect(find(text, at)).toBe(isThere)
    }),
  )
})
