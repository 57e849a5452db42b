/** Stop strings are found for any split of the text, and only possible starts of them are held back. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StopSearch } from './stop-search.ts'

function run(stops: readonly string[], pieces: readonly string[], includes = false) {
  const search = new StopSearch(stops, includes)
  let text = ''
  for (const piece of pieces) text += search.push(piece)
  return { text: text + search.end(), matched: search.matched }
}

/** The earliest end applies; of two with the same end, the longer. */
function expected(stops: readonly string[], text: string, includes: boolean) {
  for (let end = 1; end <= text.length; end++) {
    const found = stops
      .filter((stop) => stop !== '' && text.slice(0, end).endsWith(stop))
      .sort((a, b) => b.length - a.length)[0]
    if (found !== undefined)
      return { text: text.slice(0, includes ? end : end - found.length), matched: found }
  }
  return { text, matched: null }
}

const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 40 })
const stopLists = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 5 }), {
  maxLength: 4,
})

test('any split of the text gives the same result', () => {
  fc.assert(
    fc.property(
      letters,
      stopLists,
      fc.boolean(),
      fc.infiniteStream(fc.integer({ min: 1, max: 4 })),
      (text, stops, includes, sizes) => {
        const pieces: string[] = []
        for (let at = 0; at < text.length; ) {
          const size = sizes.next().value
          pieces.push(text.slice(at, at + size))
          at += size
        }
        expect(run(stops, pieces, includes)).toEqual(expected(stops, text, includes))
      },
    ),
    { numRuns: 3_000 },
  )
})

test('only a possible start of a stop string is held back', () => {
  const search = new StopSearch(['</end>', 'abab'], false)
  expect(search.push('one <')).toBe('one ')
  expect(search.push('/e')).toBe('')
  expect(search.push('x aba')).toBe('</ex ')
  expect(search.push('c')).toBe('abac')
  expect(search.push('ab')).toBe('')
  expect(search.end()).toBe('ab')
})

test('after a stop string nothing is returned', () => {
  const search = new StopSearch(['.'], true)
  expect(search.push('a.b')).toBe('a.')
  expect(search.push('c')).toBe('')
  expect(search.end()).toBe('')
})
