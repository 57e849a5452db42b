/** Messages between control and the thread that loads tokenizers. */
import type { ContentFormat, SpecialTokens } from '#kernel'
import type { DecoderRules } from './decoder-rules.ts'
import type { RenderLimits } from './render-budget.ts'
import type { TokenizerImage } from './tokenizer-image.ts'
import type { UnpackLimits } from './unpack-bundle.ts'

/** Source of a tokenizer. */
export interface TokenizerPlace {
  readonly source: string
  readonly chatTemplatePath?: string
  /** Folders that must contain its files; absent for any. */
  readonly roots?: readonly string[]
}

/** Properties of a loaded tokenizer that serving threads need. */
export interface TokenizerFacts {
  readonly vocabSize: number
  readonly special: SpecialTokens
  readonly eosIds: readonly number[]
  /** [name, text] */
  readonly templates: readonly (readonly [string, string])[]
  readonly contentFormat: ContentFormat
  readonly responseTemplate: object | null
  /** Null where decoding is not supported; the table is empty then. */
  readonly rules: DecoderRules | null
  /** Of a `TokenTable`. */
  readonly table: SharedArrayBuffer
}

export interface LoadResult {
  readonly facts: TokenizerFacts
  /** For threads that encode. */
  readonly image: TokenizerImage
}

export type LoaderTask =
  | { readonly kind: 'load'; readonly place: TokenizerPlace }
  | {
      readonly kind: 'unpack'
      readonly archive: string
      readonly folder: string
      readonly limits: UnpackLimits
    }

export type LoaderResult =
  | { readonly kind: 'loaded'; readonly loaded: LoadResult }
  | { readonly kind: 'unpacked' }
  | { readonly kind: 'unusable'; readonly message: string }

/** `workerData` of the thread. */
export interface LoaderThreadData {
  /** Of a vocabulary. */
  readonly maxFileBytes: number
  readonly rendering: RenderLimits
  /** Whether segments of prompts will be cached. */
  readonly usesSegments: boolean
}
