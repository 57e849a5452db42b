/** Makes the engine's prose: short sentences of short words, each word and each full stop exactly one token. */
import type { Random } from './random.ts'

/** At most four letters each, so that a word is one token. */
const WORDS =
  'a an the one two ten red blue warm cold slow fast calm dark tall wide bird boat bell door fire fish gate hill lake leaf moon path rain road rock sail salt sand snow song star tree wave wind wood goes sees runs ends asks adds find hold keep make move turn over near with from into past then here once only'.split(
    ' ',
  )

const SHORTEST_SENTENCE = 4
const LONGEST_SENTENCE = 11

/** @returns `count` tokens; joined they are the text */
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
