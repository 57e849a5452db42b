/** Messages between control and the threads that load tokenizers, render templates and encode. */
import type { ChatPrompt, ContentFormat, PromptPiece, SpecialTokens } from '#kernel'
import type { CacheCounts, CacheSettings } from './cached-encoder.ts'
import type { DecoderRules } from './decoder-rules.ts'
import type { RenderLimits } from './render-budget.ts'
import type { UnpackLimits } from './unpack-bundle.ts'

/** Source of a tokenizer; threads load it on first use. */
export interface TokenizerPlace {
  readonly id: string
  readonly source: string
  readonly chatTemplatePath?: string
  /** Folders that must contain its files; absent for any. */
  readonly roots?: readonly string[]
}

/** Properties of a loaded tokenizer; the same on every thread. */
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

/** One text to encode. */
export type EncodeItem = { readonly tokenizer: string } & (
  | { readonly kind: 'text'; readonly text: string; readonly addSpecialTokens: boolean }
  | { readonly kind: 'chat'; readonly prompt: ChatPrompt }
  | { readonly kind: 'pieces'; readonly pieces: readonly PromptPiece[] }
)

export type EncodeResult =
  | { readonly kind: 'done'; readonly text: string; readonly ids: Uint32Array }
  /** The template rejected the request; the message is for the client. */
  | { readonly kind: 'refused'; readonly message: string }
  /** Rendering exceeded a limit; the message is for the client. */
  | { readonly kind: 'exceeded'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string }

/** Result of one item of a task; a postponed item was not started because others took long. */
export type ItemResult = EncodeResult | { readonly kind: 'postponed' }

export type EncoderTask =
  | { readonly kind: 'load'; readonly place: TokenizerPlace }
  | {
      readonly kind: 'unpack'
      readonly archive: string
      readonly folder: string
      readonly limits: UnpackLimits
    }
  | {
      readonly kind: 'encode'
      readonly items: readonly EncodeItem[]
      /** All registered tokenizers; a thread loads missing ones and drops all others. */
      readonly places: readonly TokenizerPlace[]
    }

export type EncoderReply =
  | { readonly kind: 'loaded'; readonly facts: TokenizerFacts }
  | { readonly kind: 'unpacked' }
  | { readonly kind: 'unusable'; readonly message: string }
  | { readonly kind: 'encoded'; readonly results: readonly ItemResult[]; readonly report: CacheReport }

/** Cache counters of one task by tokenizer. */
export type CacheReport = readonly (CacheCounts & { readonly tokenizer: string; readonly bytes: number })[]

/** `workerData` of these threads. */
export interface EncoderThreadData extends CacheSettings {
  /** Of a vocabulary. */
  readonly maxFileBytes: number
  readonly rendering: RenderLimits
}
