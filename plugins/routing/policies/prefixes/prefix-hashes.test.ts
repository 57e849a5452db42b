import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pickRequest } from '../../../../test/support/policy-fleet.ts'
import { hashPrefixes, MAX_PREFIXES, prefixEnds, prefixHighs, prefixLows } from './prefix-hashes.ts'
import { readPrompt } from './prompt-bytes.ts'

/** End and hash of each prefix of a prompt. */
function prefixesOf(prompt: string, seed = 1): [end: number, hash: string][] {
  readPrompt(pickRequest({ body: JSON.stringify({ prompt }) }))
  const count = hashPrefixes(seed, 2, true)
  return Array.from({ length: count }, (_, i) => [prefixEnds[i], `${prefixLows[i]}:${prefixHighs[i]}`])
}

test('boundaries are 64 bytes apart up to 1 KiB, then eight per doubling, and at the end', () => {
  const ends = prefixesOf('x'.repeat(5_000)).map(([end]) => end)
  expect(ends.slice(0, 17)).toEqual([...Array.from({ length: 16 }, (_, i) => 64 * (i + 1)), 1_152])
  expect(ends.slice(-4)).toEqual([3_840, 4_096, 4_608, 5_002])
  const longest = prefixesOf('x'.repeat(100_000))
  expect(longest).toHaveLength(MAX_PREFIXES - 1)
  expect(longest.at(-1)?.[0]).toBe(65_536)
})

test('prompts share exactly the prefixes whose bytes they share', () => {
  fc.assert(
    fc.property(
      fc.string({ maxLength: 900 }),
      fc.string({ maxLength: 300 }),
      fc.string({ maxLength: 300 }),
      (common, one, other) => {
        const bytesOf = (rest: string) => Buffer.from(JSON.stringify(common + rest))
        const [a, b] = [bytesOf(one), bytesOf(other)]
        const hashes = new Map(prefixesOf(common + other))
        for (const [end, hash] of prefixesOf(common + one)) {
          const isShared = end <= b.length && a.subarray(0, end).equals(b.subarray(0, end))
          if (hashes.has(end)) expect(hashes.get(end) === hash).toBe(isShared)
        }
      },
    ),
  )
})

test('prompts with different seeds share nothing', () => {
  const hashes = new Set(prefixesOf('x'.repeat(2_000)).map(([, hash]) => hash))
  for (const [, hash] of prefixesOf('x'.repeat(2_000), 3)) expect(hashes.has(hash)).toBe(false)
})

test('a short prompt is one prefix, and zero bytes at its end change it', () => {
  expect(prefixesOf('hi')).toHaveLength(1)
  expect(prefixesOf('hi')).toEqual(prefixesOf('hi'))
  const ids = (count: number) => {
    readPrompt(pickRequest({ tokenIds: new Uint32Array(count) }))
    hashPrefixes(1, 2, true)
    return prefixHighs[0]
  }
  expect(ids(3)).not.toBe(ids(4))
})
