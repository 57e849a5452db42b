/**
 * Trains the sample tokenizer on this repository's own text: byte-level BPE, a few thousand pieces. Run
 * `node --conditions=weir-source plugins/models/tokenizers/sample/train.ts` in the root of the repository; the vocabulary changes
 * with the text, so it is trained anew only when there is a reason.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { toByteLetters } from '../byte-letters.ts'

const PIECES = 4_096
const TEXTS = ['*.md', 'wasm-sdk/*.md', 'examples/**/*.md', '{kernel,plugins}/**/*.ts']
const PATTERN =
  "'(?:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>']
/** Added and not special: parsers look for them in the text. */
const MARKERS = ['<think>', '</think>', '<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>']

interface Word {
  readonly count: number
  pieces: string[]
}

/** Words of the text with how often each stands there, as single byte letters. */
function readWords(): Word[] {
  const counts = new Map<string, number>()
  for (const file of globSync(TEXTS).sort()) {
    for (const [word] of readFileSync(file, 'utf8').matchAll(new RegExp(PATTERN, 'gu')))
      counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  return [...counts].map(([word, count]) => ({ count, pieces: [...toByteLetters(Buffer.from(word))] }))
}

/** How often each pair of neighbours stands in the text, and in which words. */
class Pairs {
  readonly #counts = new Map<string, number>()
  readonly #words = new Map<string, Set<Word>>()

  /** @param sign 1 takes the word's pairs in, -1 takes them out */
  count(word: Word, sign: 1 | -1): void {
    for (let at = 1; at < word.pieces.length; at++) {
      const pair = `${word.pieces[at - 1]} ${word.pieces[at]}`
      this.#counts.set(pair, (this.#counts.get(pair) ?? 0) + sign * word.count)
      const words = this.#words.get(pair)
      if (words === undefined) this.#words.set(pair, new Set([word]))
      else words.add(word)
    }
  }

  /** The pair that stands most often; of equals, the first in order. */
  mostFrequent(): string {
    let best = ''
    let most = 0
    for (const [pair, count] of this.#counts) {
      if (count < most || (count === most && pair > best)) continue
      best = pair
      most = count
    }
    return best
  }

  /** Words that have the pair, or had it once. */
  wordsWith(pair: string): readonly Word[] {
    return [...(this.#words.get(pair) ?? [])]
  }
}

function merged(pieces: readonly string[], left: string, right: string): string[] {
  const result: string[] = []
  for (let at = 0; at < pieces.length; at++) {
    const isPair = pieces[at] === left && pieces[at + 1] === right
    result.push(isPair ? left + right : pieces[at])
    if (isPair) at++
  }
  return result
}

const pairs = new Pairs()
for (const word of readWords()) pairs.count(word, 1)
const vocab = new Map<string, number>()
for (let byte = 0; byte < 256; byte++) vocab.set(toByteLetters(Uint8Array.of(byte)), byte)
const merges: [string, string][] = []
while (vocab.size < PIECES) {
  const pair = pairs.mostFrequent()
  const [left, right] = pair.split(' ')
  for (const word of pairs.wordsWith(pair)) {
    pairs.count(word, -1)
    word.pieces = merged(word.pieces, left, right)
    pairs.count(word, 1)
  }
  merges.push([left, right])
  if (!vocab.has(left + right)) vocab.set(left + right, vocab.size)
}
const added = [...SPECIAL, ...MARKERS].map((content, place) => ({
  id: PIECES + place,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: SPECIAL.includes(content),
}))
const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false }
const tokenizer = {
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: added,
  normalizer: null,
  pre_tokenizer: {
    type: 'Sequence',
    pretokenizers: [
      { type: 'Split', pattern: { Regex: PATTERN }, behavior: 'Isolated', invert: false },
      byteLevel,
    ],
  },
  post_processor: null,
  decoder: byteLevel,
  model: { type: 'BPE', vocab: Object.fromEntries(vocab), merges },
}
const config = { eos_token: '<|im_end|>', pad_token: '<|endoftext|>', model_max_length: 32_768 }
const write = (name: string, value: object) =>
  writeFileSync(new URL(name, import.meta.url), `${JSON.stringify(value)}\n`)
write('tokenizer.json', tokenizer)
write('tokenizer_config.json', config)
