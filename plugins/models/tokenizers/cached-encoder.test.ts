/** Caches return the ids of plain encoding, respect their byte limits, and are not used if splitting is unsafe. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ByteLru, CachedEncoder, type CacheSettings, type Encode, findMarkers } from './cached-encoder.ts'
import { type MarkerToken, markersOf, Segmenter } from './segments.ts'

setFlagsFromString('--expose-gc')

const marker = (content: string, more: object = {}) => ({ id: 9, content, special: true, ...more })
const on = (maxBytes: number) => ({
  promptCache: { enabled: true, maxEntries: 10, maxBytes },
  segmentCache: { enabled: true, maxBytes },
})

async function open(encode: Encode, added: readonly MarkerToken[], settings: CacheSettings) {
  const markers = await findMarkers(encode, added, true)
  return new CachedEncoder(encode, markers === null ? null : new Segmenter(markers), settings)
}

const cut = (added: readonly MarkerToken[], isPlain: boolean, text: string) =>
  new Segmenter(markersOf(added, isPlain)).cut(text)

/** A marker is one id and a pair of letters is one id, so that a wrong split changes the ids. */
function pairs(markers: readonly string[]) {
  let calls = 0
  const encode = async (text: string) => {
    calls++
    const ids: number[] = []
    const border = new RegExp(`(${markers.map((one) => one.replace(/[|[\]]/g, '\\$&')).join('|')})`)
    for (const piece of text.split(border)) {
      if (markers.includes(piece)) ids.push(1_000_000 + markers.indexOf(piece))
      else
        for (let at = 0; at < piece.length; at += 2)
          ids.push(
            Buffer.from(piece.slice(at, at + 2)).readUIntBE(
              0,
              Math.min(6, Buffer.byteLength(piece.slice(at, at + 2))),
            ),
          )
    }
    return Uint32Array.from(ids)
  }
  return { encode, calls: () => calls }
}

test('any sequence of prompts gives the ids of plain encoding', async () => {
  const markers = ['<|a|>', '[b]']
  const word = fc.constantFrom('<|a|>', '[b]', 'hello', ' ', 'é', '<|a', '|>', '')
  const prompt = fc.array(word, { maxLength: 12 }).map((words) => words.join(''))
  await fc.assert(
    fc.asyncProperty(
      fc.array(prompt, { maxLength: 12 }),
      fc.integer({ min: 0, max: 3_000 }),
      async (prompts, maxBytes) => {
        const { encode } = pairs(markers)
        const encoder = await open(
          encode,
          markers.map((one) => marker(one)),
          on(maxBytes),
        )
        expect(encoder.usesSegments).toBe(true)
        const all = await Promise.all(prompts.map((text) => encoder.encode(text)))
        for (const [place, text] of prompts.entries())
          expect([...all[place]]).toEqual([...(await encode(text))])
        expect(encoder.bytes).toBeLessThanOrEqual(2 * maxBytes)
      },
    ),
    { numRuns: 60 },
  )
})

test('in a continued chat only the new part is encoded', async () => {
  const { encode, calls } = pairs(['<|a|>'])
  const encoder = await open(encode, [marker('<|a|>')], on(100_000))
  await encoder.encode('one<|a|>two<|a|>')
  const before = calls()
  await encoder.encode('one<|a|>two<|a|>three<|a|>')
  expect(calls() - before).toBe(1)
  await encoder.encode('one<|a|>two<|a|>three<|a|>')
  expect(calls() - before).toBe(1)
  expect(encoder.counts).toEqual({ promptHits: 1, promptMisses: 2, segmentHits: 2, segmentMisses: 3 })
})

test('a tokenizer with context-dependent pieces is not split', async () => {
  const encode = async (text: string) => Uint32Array.of(text.length)
  const encoder = await open(encode, [marker('<|a|>')], on(1_000))
  expect(encoder.usesSegments).toBe(false)
  expect([...(await encoder.encode('x<|a|>y'))]).toEqual([7])
})

test('tokens that strip, normalize or overlap are not split points', () => {
  const added = [
    marker('<|a|>'),
    marker('<l>', { lstrip: true }),
    marker('<r>', { rstrip: true }),
    marker('<n>', { normalized: true }),
    marker('<in>'),
    marker('x<in>y', { special: false }),
    marker('word', { special: false }),
    marker('<tool>', { special: false }),
  ]
  const text = 'a<|a|>b<l>c<r>d<n>e<in>f word g<tool>h'
  expect(cut(added, false, text)).toEqual(['a<|a|>', 'b<l>c<r>d<n>e<in>f word g<tool>', 'h'])
  expect(cut(added, true, '<n>')).toEqual(['<n>'])
  expect(cut(added, true, 'a<n>b')).toEqual(['a<n>', 'b'])
  expect(markersOf([marker('<<'), marker('<a>')], true).size).toBe(0)
})

test('the least recently used entry is evicted', () => {
  const lru = new ByteLru(700, 3)
  const ids = Uint32Array.of(1)
  for (const text of ['a', 'b', 'c']) lru.set(text, ids)
  lru.get('a')
  lru.set('d', ids)
  expect(['a', 'b', 'c', 'd'].map((text) => lru.get(text) !== undefined)).toEqual([true, false, true, true])
  lru.set('x'.repeat(200), ids)
  expect(lru.bytes).toBeLessThanOrEqual(700)
  lru.set('y'.repeat(1_000), ids)
  expect(lru.get('y'.repeat(1_000))).toBeUndefined()
})

test('a substring used as a key does not retain its parent string', () => {
  const collect = runInNewContext('gc') as () => void
  const lru = new ByteLru(10_000_000)
  const segment = (nth: number) => `segment ${nth} ${'of many words '.repeat(20)}`
  const COUNT = 100
  for (let nth = 0; nth < COUNT; nth++) lru.set(segment(nth), Uint32Array.of(nth))
  collect()
  const before = process.memoryUsage().heapUsed
  for (let nth = 0; nth < COUNT; nth++) {
    const prompt = Buffer.from(segment(nth) + 'x'.repeat(500_000)).toString('latin1')
    expect(lru.get(prompt.slice(0, segment(nth).length))).toEqual(Uint32Array.of(nth))
  }
  collect()
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000)
})

test('the cache behaves like a plain list', () => {
  const key = fc.integer({ min: 0, max: 12 }).map((nth) => 'k'.repeat(nth))
  const step = fc.oneof(
    fc.record({ set: key, size: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ get: key }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const lru = new ByteLru(1_200, 5)
      let model: { text: string; ids: Uint32Array; bytes: number }[] = []
      const total = () => model.reduce((sum, { bytes }) => sum + bytes, 0)
      for (const one of steps) {
        const text = 'get' in one ? one.get : one.set
        const known = model.find((entry) => entry.text === text)
        if ('get' in one) {
          expect(lru.get(text)).toBe(known?.ids)
          if (known !== undefined) model = [...model.filter((entry) => entry !== known), known]
          continue
        }
        const ids = new Uint32Array(one.size)
        const bytes = 2 * text.length + ids.byteLength + 200
        lru.set(text, ids)
        if (known === undefined && bytes <= 1_200) model.push({ text, ids, bytes })
        while (total() > 1_200 || model.length > 5) model.shift()
        expect([lru.size, lru.bytes]).toEqual([model.length, total()])
      }
    }),
  )
})
