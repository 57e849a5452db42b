import fc from 'fast-check'
import { expect, test } from 'vitest'
import { forgetSearchedText, MarkerSearch } from './marker-search.ts'

const sets = [
  ['<a>', '</a>'],
  ['[', '{'],
  ['[x', '<y', '◁z'],
].map((markers) => new MarkerSearch(markers))

/** The same search, unoptimised. */
function slowFind(markers: readonly string[], text: string, from: number): [at: number, found: number] {
  for (let at = from; at < text.length; at++) {
    const found = markers.findIndex((marker) => text.startsWith(marker, at))
    if (found >= 0) return [at, found]
    if (markers.some((marker) => marker.startsWith(text.slice(at)))) return [at, -1]
  }
  return [text.length, -1]
}

test('the first marker is found from any position, in any order of searches', () => {
  const text = fc.string({
    unit: fc.constantFrom('<', 'a', '>', '/', '[', '{', 'x', 'y', '◁', 'z'),
    maxLength: 20,
  })
  fc.assert(
    fc.property(
      fc.constantFrom(...sets),
      text,
      fc.array(fc.nat(20), { maxLength: 6 }),
      (search, text, places) => {
        for (const place of places) {
          const from = Math.min(place, text.length)
          const at = search.find(text, from)
          expect([at, search.found]).toEqual(slowFind(search.markers, text, from))
          if (place % 3 === 0) forgetSearchedText()
        }
      },
    ),
    { numRuns: 2_000 },
  )
})
