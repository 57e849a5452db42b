/**
 * Encodes with a byte-level vocabulary, as the native library does, in a tenth of its memory: added tokens first, then
 * words, then merges within each.
 */
import type { BpeTables } from './bpe-tables.ts'
import { NONE } from './bpe-tables.ts'
import type { MarkerIndex } from './marker-index.ts'
import { mergeWord } from './merge-word.ts'
import type { SplitWords } from './split-words.ts'

/** Number of cached words, and the maximum length of a cached word: texts repeat few words. */
const MAX_WORDS = 32_768
const MAX_WORD_LENGTH = 24
/** Parts of strings that are shorter are copies already. */
const OWN_LENGTH = 13

/** Added tokens of one stage: found in the text before, or after it was normalized. */
export interface MarkerStage {
  readonly index: MarkerIndex
  readonly ids: ReadonlyMap<string, number>
}

export interface ByteBpeParts {
  readonly tables: BpeTables
  readonly split: SplitWords
  readonly isNfc: boolean
  /** A word that is a piece is encoded as that piece, regardless of the merges. */
  readonly ignoresMerges: boolean
  readonly raw: MarkerStage
  readonly normalized: MarkerStage
  /** Ids around a text with special tokens. */
  readonly before: readonly number[]
  readonly after: readonly number[]
}

type Encode = (text: string, out: number[]) => void

export class ByteBpe {
  readonly #parts: ByteBpeParts
  /** Of single bytes. */
  readonly #byteIds = new Uint32Array(256)
  readonly #words = new Map<string, number | readonly number[]>()
  #bytes = new Uint8Array(1_024)

  /** @throws Error when a byte has no piece */
  constructor(parts: ByteBpeParts) {
    this.#parts = parts
    for (let byte = 0; byte < 256; byte++) {
      const id = parts.tables.pieceOf(Uint8Array.of(byte), 0, 1)
      if (id === NONE) throw new Error(`the vocabulary has no piece for byte ${byte}`)
      this.#byteIds[byte] = id
    }
  }

  encode(text: string, addSpecialTokens: boolean): Uint32Array {
    const ids: number[] = []
    const { before, after } = this.#parts
    if (addSpecialTokens) for (const id of before) ids.push(id)
    this.#encodeStage(text.toWellFormed(), this.#parts.raw, ids, this.#encodeNormalized)
    if (addSpecialTokens) for (const id of after) ids.push(id)
    return Uint32Array.from(ids)
  }

  /** Treats added tokens in the text as plain text. */
  encodePlain(text: string): Uint32Array {
    const ids: number[] = []
    const whole = text.toWellFormed()
    this.#encodeWords(this.#parts.isNfc ? whole.normalize('NFC') : whole, ids)
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
    const { isNfc, normalized } = this.#parts
    this.#encodeStage(isNfc ? text.normalize('NFC') : text, normalized, out, this.#encodeWords)
  }

  readonly #encodeWords: Encode = (text, out) => {
    const words = this.#words
    for (const word of this.#parts.split(text)) {
      const known = words.get(word)
      if (known === undefined) this.#encodeWord(word, out)
      else if (typeof known === 'number') out.push(known)
      else for (const id of known) out.push(id)
    }
  }

  #encodeWord(word: string, out: number[]): void {
    const { tables, ignoresMerges } = this.#parts
    const length = this.#write(word)
    const first = out.length
    const whole = ignoresMerges ? tables.pieceOf(this.#bytes, 0, length) : NONE
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
