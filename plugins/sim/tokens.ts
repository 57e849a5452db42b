/**
 * The tokenizer of the simulated HTTP engine. A token is up to four characters of one kind: word characters (ASCII letters
 * and digits, and all non-ASCII characters) with at most one space before them, white space, or other characters. Surrogate
 * pairs are not split. Joined, the tokens are the text.
 */
import { hashText } from './random.ts'

const TOKEN_LENGTH = 4
const SPACE = 0x20
const FIRST_ID = 1000
export const VOCABULARY_SIZE = 32_000

type Kind = 'space' | 'word' | 'other'

/** @returns the number of tokens of the text */
export function countTokens(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at = nextTokenEnd(text, at)) count += 1
  return count
}

export function splitTokens(text: string): string[] {
  const tokens: string[] = []
  let start = 0
  while (start < text.length) {
    const end = nextTokenEnd(text, start)
    tokens.push(text.slice(start, end))
    start = end
  }
  return tokens
}

/** A stable id for a token, below the engine's vocabulary size. Different tokens may share one. */
export function tokenId(token: string): number {
  return FIRST_ID + (hashText(token) % (VOCABULARY_SIZE - FIRST_ID))
}

/** @returns the end of the token that starts at `start` */
export function nextTokenEnd(text: string, start: number): number {
  let at = start
  if (text.charCodeAt(at) === SPACE && kindOf(text.charCodeAt(at + 1)) === 'word') at += 1
  const kind = kindOf(text.charCodeAt(at))
  const limit = Math.min(at + TOKEN_LENGTH, text.length)
  while (at < limit && kindOf(text.charCodeAt(at)) === kind) at += 1
  return isLowSurrogate(text.charCodeAt(at)) && isHighSurrogate(text.charCodeAt(at - 1)) ? at + 1 : at
}

/** Beyond the end the code is NaN, which is of kind other. */
function kindOf(code: number): Kind {
  if (code <= SPACE) return 'space'
  if (code >= 0x80) return 'word'
  const isDigit = code >= 0x30 && code <= 0x39
  const isLetter = (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a)
  return isDigit || isLetter ? 'word' : 'other'
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff
}
