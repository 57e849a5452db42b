/** Encodes with a vocabulary: by the gateway's own encoder if it supports the vocabulary, else by the native library. */
import { createRequire } from 'node:module'
import type { Tokenizer } from 'tokenizers'
import { type BpeShape, ByteBpe } from './bpe/byte-bpe.ts'
import { joined } from './cached-encoder.ts'
import { type MarkerToken, withoutMarkers } from './segments.ts'
import { readJson, type VocabularyImage } from './tokenizer-image.ts'

export interface VocabularyModel {
  encode(text: string, addSpecialTokens: boolean): Uint32Array | Promise<Uint32Array>
  /** Treats added tokens in the text as plain text. */
  encodePlain(text: string): Uint32Array | Promise<Uint32Array>
  tokenToId(content: string): number | null
}

const require = createRequire(import.meta.url)

/** @throws Error of the library */
export function openModel(image: VocabularyImage, added: readonly MarkerToken[]): VocabularyModel {
  if (image.kind === 'bpe') return new ByteBpe(image.memory, readJson<BpeShape>(image.shape), added)
  return nativeModel(openNative(image.file), added)
}

/** @param file bytes of a `tokenizer.json`. @throws Error of the library */
export function openNative(file: SharedArrayBuffer): Tokenizer {
  // Loaded here: threads that never meet such a tokenizer do without it.
  const { Tokenizer } = require('tokenizers') as typeof import('tokenizers')
  const tokenizer = Tokenizer.fromString(Buffer.from(file).toString())
  tokenizer.disableTruncation()
  tokenizer.disablePadding()
  return tokenizer
}

export function nativeModel(tokenizer: Tokenizer, added: readonly MarkerToken[]): VocabularyModel {
  const encode = async (text: string, addSpecialTokens: boolean) => {
    // The library takes UTF-8: halves of a surrogate pair become the replacement character, as everywhere.
    const encoding = await tokenizer.encode(text.toWellFormed(), null, { addSpecialTokens })
    return Uint32Array.from(encoding.getIds())
  }
  return {
    encode,
    // The library looks for added tokens always: each is cut behind its first letter.
    encodePlain: async (text) =>
      joined(await Promise.all(withoutMarkers(text, added).map((part) => encode(part, false)))),
    tokenToId: (content) => tokenizer.tokenToId(content),
  }
}
