/** Plans an answer before its first byte: tokens, count and finish reason. */
import type { Random } from './random.ts'
import { splitTokens } from './tokens.ts'

/** At most four letters each, so that a word is one token. */
const WORDS =
  'a an the one two ten red blue warm cold slow fast calm dark tall wide bird boat bell door fire fish gate hill lake leaf moon path rain road rock sail salt sand snow song star tree wave wind wood goes sees runs ends asks adds find hold keep make move turn over near with from into past then here once only'.split(
    ' ',
  )

const SHORTEST_SENTENCE = 4
const LONGEST_SENTENCE = 11

/** Generates short sentences in which each word and full stop is one token. @returns `count` tokens; joined they are the text */
export function writeProse(random: Random, count: number): string[] {
  const tokens: string[] = []
  let wordsLeft = sentenceLength(random)
  let isSentenceStart = true
  while (tokens.length < count) {
    if (wordsLeft === 0) {
      tokens.push('.')
      wordsLeft = sentenceLength(random)
      isSentenceStart = true
      continue
    }
    const word = WORDS[random.below(WORDS.length)]
    const shown = isSentenceStart ? word.charAt(0).toUpperCase() + word.slice(1) : word
    tokens.push(tokens.length === 0 ? shown : ` ${shown}`)
    wordsLeft -= 1
    isSentenceStart = false
  }
  return tokens
}

function sentenceLength(random: Random): number {
  return SHORTEST_SENTENCE + random.below(LONGEST_SENTENCE - SHORTEST_SENTENCE + 1)
}

/** Limits of a request on its answer. */
export interface Limits {
  /** Null: no limit. */
  readonly maxTokens: number | null
  readonly minTokens: number
  /** Generate up to `maxTokens`. */
  readonly ignoreEos: boolean
  readonly stop: readonly string[]
  /** Leave the stop string in the text. */
  readonly keepStop: boolean
}

export interface Draft {
  readonly text: string
  /** The text by tokens, as streamed; a stop string may truncate the last one. */
  readonly pieces: readonly string[]
  /** Tokens produced, including those removed by a stop string. */
  readonly completionTokens: number
  readonly finishReason: 'stop' | 'length'
  readonly matchedStop: string | null
}

/**
 * An answer in prose.
 * @param naturalTokens length without limits
 * @param roomTokens room left in the context
 */
export function draftProse(random: Random, naturalTokens: number, roomTokens: number, limits: Limits): Draft {
  const ceiling = Math.min(limits.maxTokens ?? Number.POSITIVE_INFINITY, roomTokens)
  const isEndless = limits.ignoreEos && limits.maxTokens !== null
  const wanted = isEndless ? Number.POSITIVE_INFINITY : Math.max(naturalTokens, limits.minTokens)
  return endDraft(writeProse(random, Math.min(wanted, ceiling)), wanted <= ceiling, limits)
}

export function draftGiven(text: string, roomTokens: number, limits: Limits): Draft {
  const tokens = splitTokens(text)
  const ceiling = Math.min(limits.maxTokens ?? Number.POSITIVE_INFINITY, roomTokens)
  return endDraft(tokens.slice(0, ceiling), tokens.length <= ceiling, limits)
}

function endDraft(tokens: string[], isWhole: boolean, limits: Limits): Draft {
  const text = tokens.join('')
  const found = firstStop(text, limits.stop)
  if (found === null) {
    return {
      text,
      pieces: tokens,
      completionTokens: tokens.length,
      finishReason: isWhole ? 'stop' : 'length',
      matchedStop: null,
    }
  }
  const matchEnd = found.at + found.stop.length
  const shown = text.slice(0, limits.keepStop ? matchEnd : found.at)
  return {
    text: shown,
    pieces: firstCharacters(tokens, shown.length),
    completionTokens: tokensWithin(tokens, matchEnd),
    finishReason: 'stop',
    matchedStop: found.stop,
  }
}

function firstStop(text: string, stops: readonly string[]): { at: number; stop: string } | null {
  let found: { at: number; stop: string } | null = null
  for (const stop of stops) {
    const at = stop === '' ? -1 : text.indexOf(stop)
    if (at >= 0 && (found === null || at < found.at)) found = { at, stop }
  }
  return found
}

function firstCharacters(tokens: readonly string[], length: number): string[] {
  const pieces: string[] = []
  let left = length
  for (const token of tokens) {
    if (left <= 0) break
    pieces.push(token.slice(0, left))
    left -= token.length
  }
  return pieces
}

/** How many tokens it took to produce that many characters. */
function tokensWithin(tokens: readonly string[], length: number): number {
  let count = 0
  for (let left = length; left > 0; count += 1) left -= tokens[count].length
  return count
}
