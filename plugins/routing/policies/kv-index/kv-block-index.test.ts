import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import type { KvBlock } from '#kernel'
import { KvBlockIndex } from './kv-block-index.ts'

const SIZE = 4

/** Token ids of a prompt, one letter per block. */
const tokensOf = (prompt: string) =>
  Uint32Array.from(
    [...prompt].flatMap((letter) => Array.from({ length: SIZE }, (_, i) => letter.charCodeAt(0) * 10 + i)),
  )

/** The engine's hash of the last block of a prompt. */
const hashOf = (prompt: string) =>
  [...prompt].reduce((hash, letter) => BigInt.asIntN(64, hash * 131n + BigInt(letter.charCodeAt(0))), 7n)

const blockOf = (prompt: string): KvBlock => ({ hash: hashOf(prompt), tokenIds: tokensOf(prompt.slice(-1)) })

function stored(prompt: string, from = 0) {
  const blocks = Array.from({ length: prompt.length - from }, (_, i) =>
    blockOf(prompt.slice(0, from + i + 1)),
  )
  return {
    kind: 'stored',
    parentHash: from === 0 ? null : hashOf(prompt.slice(0, from)),
    blocks,
    blockSize: SIZE,
  } as const
}

const removed = (...prompts: string[]) => ({ kind: 'removed', hashes: prompts.map(hashOf) }) as const
const cleared = { kind: 'cleared' } as const

let index: KvBlockIndex

beforeEach(() => {
  index = newIndex()
})

/** Purges at once. */
function newIndex(): KvBlockIndex {
  return new KvBlockIndex((work) => {
    while (work()) {}
  })
}

/** Slot → consecutive blocks. */
function matches(prompt: string, of = index): Record<number, number> {
  const count = of.match(tokensOf(prompt))
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [of.matchSlots[i], of.matchBlocks[i]]))
}

test('returns the number of leading blocks of a prompt for each worker', () => {
  index.apply(1, stored('abcdefgh'))
  index.apply(2, stored('abc'))
  index.apply(3, stored('xbc'))
  expect(matches('abcdefghij')).toEqual({ 1: 8, 2: 3 })
  expect(matches('ab')).toEqual({ 1: 2, 2: 2 })
  expect(matches('x')).toEqual({ 3: 1 })
  expect(matches('q')).toEqual({})
  expect(matches('')).toEqual({})
})

test('the same blocks after another prefix are other blocks', () => {
  index.apply(1, stored('abc'))
  expect(matches('zbc')).toEqual({})
})

test('later blocks are joined to their parent', () => {
  index.apply(1, stored('abc'))
  index.apply(1, stored('abcde', 3))
  expect(matches('abcdef')).toEqual({ 1: 5 })
})

test('blocks of an unknown parent start a prompt', () => {
  index.apply(1, stored('abcde', 3))
  expect(matches('de')).toEqual({ 1: 2 })
})

test('removed blocks are gone, cleared ones all at once, others are kept', () => {
  index.apply(1, stored('abcdef'))
  index.apply(2, stored('abcdef'))
  index.apply(1, removed('abcd', 'abcde', 'abcdef', 'never stored'))
  expect(matches('abcdef')).toEqual({ 1: 3, 2: 6 })
  index.apply(2, cleared)
  expect(matches('abcdef')).toEqual({ 1: 3 })
  expect([index.blocksOf(1), index.blocksOf(2), index.size]).toEqual([3, 0, 3])
  index.clear(1)
  expect(index.size).toBe(0)
})

test('a block that is stored twice counts once', () => {
  index.apply(1, stored('abc'))
  index.apply(1, stored('abc'))
  expect(index.blocksOf(1)).toBe(3)
  index.apply(1, removed('abc'))
  expect(matches('abc')).toEqual({ 1: 2 })
})

test('a cleared worker is excluded before its blocks are purged', () => {
  const left: (() => boolean)[] = []
  const lazy = new KvBlockIndex((work) => left.push(work))
  lazy.apply(1, stored('abc'))
  lazy.apply(1, cleared)
  expect(matches('abc', lazy)).toEqual({})
  lazy.apply(1, stored('ab'))
  while (left[0]()) {}
  expect(matches('abc', lazy)).toEqual({ 1: 2 })
  expect(lazy.size).toBe(2)
})

test('blocks of another size than the first one are ignored', () => {
  index.apply(1, stored('a'))
  const odd = { hash: 99n, tokenIds: Uint32Array.of(1, 2, 3) }
  index.apply(1, { kind: 'stored', parentHash: hashOf('a'), blocks: [odd], blockSize: 3 })
  expect(index.blocksOf(1)).toBe(1)
})

describe('compared with a plain model', () => {
  const promptArbitrary = fc
    .tuple(fc.constantFrom('a', 'b'), fc.array(fc.constantFrom('x', 'y'), { maxLength: 90 }))
    .map(([first, rest]) => first + rest.join('').replaceAll(/(.)\1{3,}/g, '$1z'))
  const stepArbitrary = fc.oneof(
    fc.record({ kind: fc.constant('store' as const), slot: fc.nat(5), prompt: promptArbitrary }),
    fc.record({
      kind: fc.constant('drop' as const),
      slot: fc.nat(5),
      prompt: promptArbitrary,
      keep: fc.nat(90),
    }),
    fc.record({ kind: fc.constant('clear' as const), slot: fc.nat(5) }),
  )

  test('after any stores, removals and clears, each worker has its own blocks', () => {
    fc.assert(
      fc.property(fc.array(stepArbitrary, { maxLength: 40 }), fc.array(promptArbitrary), (steps, asked) => {
        const tested = newIndex()
        const model = new Map<number, Set<string>>()
        const prefixes = (prompt: string, from = 0) =>
          Array.from({ length: prompt.length - from }, (_, i) => prompt.slice(0, from + i + 1))
        for (const step of steps) {
          const held = model.get(step.slot) ?? new Set<string>()
          model.set(step.slot, held)
          if (step.kind === 'store') {
            tested.apply(step.slot, stored(step.prompt))
            for (const prefix of prefixes(step.prompt)) held.add(prefix)
          } else if (step.kind === 'clear') {
            tested.apply(step.slot, cleared)
            held.clear()
          } else {
            // Engines evict leaves first, so everything after the prefix is removed too.
            const root = step.prompt.slice(0, step.keep + 1)
            const gone = [...held].filter((prefix) => prefix.startsWith(root))
            tested.apply(step.slot, removed(...gone))
            for (const prefix of gone) held.delete(prefix)
          }
        }
        for (const prompt of asked) {
          const expected: Record<number, number> = {}
          for (const [slot, held] of model) {
            const blocks = prefixes(prompt).findIndex((prefix) => !held.has(prefix))
            const count = blocks < 0 ? prompt.length : blocks
            if (count > 0) expected[slot] = count
          }
          expect(matches(prompt, tested)).toEqual(expected)
        }
        for (const [slot, held] of model) expect(tested.blocksOf(slot)).toBe(held.size)
        expect(tested.size).toBe(new Set([...model.values()].flatMap((held) => [...held])).size)
      }),
      { numRuns: 150 },
    )
  })
})

test('many workers with long prompts are distinguished by single blocks', () => {
  const long = Array.from({ length: 400 }, (_, i) => String.fromCharCode(65 + ((i * i) % 50))).join('')
  for (let slot = 0; slot < 80; slot++) index.apply(slot, stored(long.slice(0, 3 * (slot + 1))))
  const found = matches(long)
  expect(Object.keys(found)).toHaveLength(80)
  for (let slot = 0; slot < 80; slot++) expect(found[slot]).toBe(3 * (slot + 1))
})
