/**
 * Encodes with a byte-level vocabulary, as the native library does, in a tenth of its memory: added tokens first, then
 * words, then merges within each.
 */

import { byteOfLetter } from '../byte-letters.ts'
import { MarkerIndex, type MarkerToken } from '../segments.ts'
import type { AddedToken } from '../token-table.ts'
import { type BpeMemory, BpeTables, NONE } from './bpe-tables.ts'
import { mergeWord } from './merge-word.ts'
import { toNfc } from './nfc.ts'
import { type SplitWords, toSplitWords } from './split-words.ts'

/** Number of cached words, and the maximum length of a cached word: texts repeat few words. */
const MAX_WORDS = 32_768
const MAX_WORD_LENGTH = 24
/** Parts of strings that are shorter are copies already. */
const OWN_LENGTH = 13

/** Added tokens of one stage: found in the text before, or after it was normalized. */
interface MarkerStage {
  readonly index: MarkerIndex
  readonly ids: ReadonlyMap<string, number>
}

/** Everything about a vocabulary that its tables do not contain. */
export interface BpeShape {
  /** `pre_tokenizer` of the file. */
  readonly preTokenizer: unknown
  readonly isNfc: boolean
  readonly ignoresMerges: boolean
  /** Ids around a text where special tokens are wanted. */
  readonly before: readonly number[]
  readonly after: readonly number[]
  /** [text, id] of pieces that are text and not letters for bytes. */
  readonly texts: readonly (readonly [string, number])[]
}

type Encode = (text: string, out: number[]) => void

export class ByteBpe {
  readonly #shape: BpeShape
  readonly #split: SplitWords
  readonly #tables: BpeTables
  readonly #raw: MarkerStage
  readonly #normalized: MarkerStage
  /** Ids of added tokens and of textual pieces. */
  readonly #ids: ReadonlyMap<string, number>
  /** Of single bytes. */
  readonly #byteIds = new Uint32Array(256)
  readonly #words = new Map<string, number | readonly number[]>()
  #bytes = new Uint8Array(1_024)

  /** @param added tokens with their ids. @throws Error for rules that are not known, or when a byte has no piece */
  constructor(memory: BpeMemory, shape: BpeShape, added: readonly MarkerToken[]) {
    const split = toSplitWords(shape.preTokenizer)
    if (split === null) throw new Error('the pre_tokenizer of the vocabulary is not supported')
    this.#shape = shape
    this.#split = split
    this.#tables = new BpeTables(memory)
    const isLate = ({ normalized }: MarkerToken) => normalized === true
    this.#raw = stageOf(added.filter((token) => !isLate(token)))
    this.#normalized = stageOf(added.filter(isLate), shape.isNfc)
    this.#ids = new Map([...shape.texts, ...added.map(({ content, id }) => [content, id] as const)])
    for (let byte = 0; byte < 256; byte++) {
      const id = this.#tables.pieceOf(Uint8Array.of(byte), 0, 1)
      if (id === NONE) throw new Error(`the vocabulary has no piece for byte ${byte}`)
      this.#byteIds[byte] = id
    }
  }

  tokenToId(content: string): number | null {
    return this.#ids.get(content) ?? letterPiece(this.#tables, content)
  }

  encode(text: string, addSpecialTokens: boolean): Uint32Array {
    const ids: number[] = []
    const { before, after } = this.#shape
    if (addSpecialTokens) for (const id of before) ids.push(id)
    this.#encodeStage(text.toWellFormed(), this.#raw, ids, this.#encodeNormalized)
    if (addSpecialTokens) for (const id of after) ids.push(id)
    return Uint32Array.from(ids)
  }

  /** Treats added tokens in the text as plain text. */
  encodePlain(text: string): Uint32Array {
    const ids: number[] = []
    const whole = text.toWellFormed()
    this.#encodeWords(this.#shape.isNfc ? toNfc(whole) : whole, ids)
    return Uint32Array.from(ids)
  }

  /** @param encodeRest encodes the text around added tokens */
  #encodeStage(text: string, { index, ids }: MarkerStage, out: number[], encodeRest: Encode): void {
    let start = 0
    for (let at = index.find(text, 0); at >= 0; at = index.find(text, start)) {
      if (at > start) encodeRest(text.slice(start, at), out)
      start = at + index.length
      out.push(ids.get(text.slice(at, start)) ?? 0)
    }
    if (start < text.length) encodeRest(start === 0 ? text : text.slice(start), out)
  }

  readonly #encodeNormalized: Encode = (text, out) => {
    const whole = this.#shape.isNfc ? toNfc(text) : text
    this.#encodeStage(whole, this.#normalized, out, this.#encodeWords)
  }

  readonly #encodeWords: Encode = (text, out) => {
    const words = this.#words
    for (const word of this.#split(text)) {
      const known = words.get(word)
      if (known === undefined) this.#encodeWord(word, out)
      else if (typeof known === 'number') out.push(known)
      else for (const id of known) out.push(id)
    }
  }

  #encodeWord(word: string, out: number[]): void {
    const tables = this.#tables
    const length = this.#write(word)
    const first = out.length
    const whole = this.#shape.ignoresMerges ? tables.pieceOf(this.#bytes, 0, length) : NONE
    if (whole !== NONE) out.push(whole)
    else mergeWord(tables, this.#byteIds, this.#bytes, length, out)
    if (word.length > MAX_WORD_LENGTH) return
    if (this.#words.size >= MAX_WORDS) this.#words.clear()
    const key = word.length < OWN_LENGTH ? word : Buffer.from(word, 'utf16le').toString('utf16le')
    this.#words.set(key, out.length === first + 1 ? out[first] : out.slice(first))
  }

  /** Writes the UTF-8 of the word to `#bytes`. */
  #write(word: string): number {
    if (this.#bytes.length < 3 * word.length) this.#bytes = new Uint8Array(6 * word.length)
    const bytes = this.#bytes
    for (let at = 0; at < word.length; at++) {
      const unit = word.charCodeAt(at)
      if (unit > 0x7f) return encoder.encodeInto(word, bytes).written
      bytes[at] = unit
    }
    return word.length
  }
}

const encoder = new TextEncoder()

/** The id of a piece that is written in letters for bytes. */
export function letterPiece(tables: BpeTables, content: string): number | null {
  const bytes = Uint8Array.from(content, (letter) => Math.max(byteOfLetter(letter.charCodeAt(0)), 0))
  if ([...content].some((letter) => letter.length > 1 || byteOfLetter(letter.charCodeAt(0)) < 0)) return null
  const id = tables.pieceOf(bytes, 0, bytes.length)
  return id === NONE ? null : id
}

function stageOf(added: readonly AddedToken[], isNfc = false): MarkerStage {
  const written = (content: string) => (isNfc ? toNfc(content) : content)
  return {
    index: new MarkerIndex(added.map(({ content }) => written(content))),
    ids: new Map(added.map(({ content, id }) => [written(content), id])),
  }
}
