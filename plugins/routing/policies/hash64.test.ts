import { expect, test } from 'vitest'
import { finish, hashHigh, hashLow, hashText, hashWords } from './hash64.ts'

test('similar texts spread evenly over both lanes', () => {
  const buckets = { low: new Uint32Array(64), high: new Uint32Array(64) }
  const seen = new Set<string>()
  for (let i = 0; i < 64_000; i++) {
    hashText(`session-${i}`)
    buckets.low[hashLow >>> 26]++
    buckets.high[hashHigh & 63]++
    seen.add(`${hashLow}:${hashHigh}`)
  }
  expect(seen.size).toBe(64_000)
  for (const counts of [buckets.low, buckets.high]) {
    expect(Math.min(...counts)).toBeGreaterThan(850)
    expect(Math.max(...counts)).toBeLessThan(1_150)
  }
})

test('a change of one bit of any word changes the hash', () => {
  const words = Int32Array.from({ length: 33 }, (_, i) => i * 7_919)
  const hashes = new Set<string>()
  const add = () => {
    hashWords(words, 0, words.length, 1, 2)
    finish(hashLow, hashHigh, words.length)
    hashes.add(`${hashLow}:${hashHigh}`)
  }
  add()
  for (let i = 0; i < words.length; i++) {
    for (let bit = 0; bit < 32; bit++) {
      words[i] ^= 1 << bit
      add()
      words[i] ^= 1 << bit
    }
  }
  expect(hashes.size).toBe(33 * 32 + 1)
})
