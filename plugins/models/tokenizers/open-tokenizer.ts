/** Opens loaded tokenizers, and their vocabularies: by the gateway's own encoder if it supports them, else by the native library. */
import { createRequire } from 'node:module'
import type { Tokenizer } from 'tokenizers'
import type { PromptPiece } from '#kernel'
import { type BpeShape, ByteBpe } from './bpe/byte-bpe.ts'
import { CachedEncoder, type CacheSettings, joined } from './cached-encoder.ts'
import { ChatTemplates } from './chat-template.ts'
import type { RenderLimits } from './render-budget.ts'
import { type MarkerToken, Segmenter, withoutMarkers } from './segments.ts'
import {
  readJson,
  type TokenizerDescription,
  type TokenizerImage,
  type VocabularyImage,
} from './tokenizer-image.ts'

export interface OpenTokenizer {
  readonly templates: ChatTemplates
  readonly encoder: CachedEncoder
  /** Encodes with the tokens that the tokenizer adds around a text. */
  encodeSpecial(text: string): Promise<Uint32Array>
  /** Special tokens are those that are given as such. @throws Error naming a token that the vocabulary lacks */
  encodePieces(pieces: readonly PromptPiece[]): Promise<Uint32Array>
}

export interface OpenSettings extends CacheSettings {
  readonly rendering: RenderLimits
}

export function openTokenizer(image: TokenizerImage, settings: OpenSettings): OpenTokenizer {
  const { added, markers, special, templates, reports } = readJson<TokenizerDescription>(image.description)
  const model = openModel(image.vocabulary, added)
  return {
    templates: new ChatTemplates(new Map(templates), special, {
      limits: settings.rendering,
      reports: new Map(reports),
    }),
    encoder: new CachedEncoder(
      (text) => model.encode(text, false),
      markers === null ? null : new Segmenter(markers),
      settings,
    ),
    encodeSpecial: async (text) => model.encode(text, true),
    encodePieces: (pieces) => encodePieces(pieces, model),
  }
}

async function encodePieces(pieces: readonly PromptPiece[], model: VocabularyModel): Promise<Uint32Array> {
  return joined(
    await Promise.all(
      pieces.map(({ text, isToken }) => {
        if (!isToken) return model.encodePlain(text)
        const id = model.tokenToId(text)
        if (id === null) throw new Error(`the vocabulary has no token ${text}`)
        return Uint32Array.of(id)
      }),
    ),
  )
}

export interface VocabularyModel {
  encode(text: string, addSpecialTokens: boolean): Uint32Array | Promise<Uint32Array>
  /** Treats added tokens in the text as plain text. */
  encodePlain(text: string): Uint32Array | Promise<Uint32Array>
  tokenToId(content: string): number | null
}

const require = createRequire(import.meta.url)

/** @throws Error of the library */
function openModel(image: VocabularyImage, added: readonly MarkerToken[]): VocabularyModel {
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
