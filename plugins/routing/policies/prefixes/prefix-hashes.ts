/**
 * Hashes of prefixes of the prompt read by `prompt-bytes.ts`: every 64 bytes (16 tokens) up to 1 KiB, then eight per
 * doubling, so that a match is accurate to an eighth of its length and a prompt of 64 KiB has 65 prefixes.
 * @hot
 */
import { finish, hashHigh, hashLow, hashWords } from '../hash64.ts'
import { promptBytes, promptWords } from './prompt-bytes.ts'

/** Prefixes of the longest prompt. */
export const MAX_PREFIXES = 65

const FIRST_STEP_WORDS = 16
const STEPS_PER_DOUBLING = 8

/** Prefixes of the last call, shortest first. One set per thread, because picks are synchronous. */
export const prefixLows = new Int32Array(MAX_PREFIXES)
export const prefixHighs = new Int32Array(MAX_PREFIXES)
/** Bytes of each prefix. */
export const prefixEnds = new Int32Array(MAX_PREFIXES)

/**
 * @param seedLow separates models, with seedHigh
 * @param countsRest adds the whole prompt as a prefix, so that short prompts match too
 * @returns the number of prefixes
 */
export function hashPrefixes(seedLow: number, seedHigh: number, countsRest: boolean): number {
  const wholeWords = promptBytes >>> 2
  let count = 0
  let word = 0
  let low = seedLow
  let high = seedHigh
  for (let next = FIRST_STEP_WORDS; next <= wholeWords && count < MAX_PREFIXES; next += stepAt(next)) {
    hashWords(promptWords, word, next, low, high)
    low = hashLow
    high = hashHigh
    word = next
    add(count++, low, high, next << 2)
  }
  const end = count === 0 ? 0 : prefixEnds[count - 1]
  if (!countsRest || end === promptBytes || count === MAX_PREFIXES) return count
  hashWords(promptWords, word, (promptBytes + 3) >>> 2, low, high)
  add(count, hashLow, hashHigh, promptBytes)
  return count + 1
}

function add(index: number, low: number, high: number, end: number): void {
  finish(low, high, end)
  prefixLows[index] = hashLow
  prefixHighs[index] = hashHigh
  prefixEnds[index] = end
}

/** Words from one prefix end to the next. */
function stepAt(word: number): number {
  const doubling = 1 << (31 - Math.clz32(word))
  return Math.max(FIRST_STEP_WORDS, doubling / STEPS_PER_DOUBLING)
}
