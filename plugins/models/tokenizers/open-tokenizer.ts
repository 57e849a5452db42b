/** Opens a loaded tokenizer on a thread that encodes. */
import type { PromptPiece } from '#kernel'
import { CachedEncoder, type CacheSettings, joined } from './cached-encoder.ts'
import { ChatTemplates } from './chat-template.ts'
import type { RenderLimits } from './render-budget.ts'
import { Segmenter } from './segments.ts'
import { readJson, type TokenizerDescription, type TokenizerImage } from './tokenizer-image.ts'
import { openModel, type VocabularyModel } from './vocabulary-model.ts'

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
  const { added, markers, special, templates, forms } = readJson<TokenizerDescription>(image.description)
  const model = openModel(image.vocabulary, added)
  return {
    templates: new ChatTemplates(new Map(templates), special, {
      limits: settings.rendering,
      forms: new Map(forms),
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
