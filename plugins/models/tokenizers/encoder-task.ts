/** Messages between control and the threads that render templates and encode. */
import type { ChatPrompt, PromptPiece } from '#kernel'
import type { CacheCounts } from './cached-encoder.ts'
import type { TokenizerImage } from './tokenizer-image.ts'

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

export interface EncoderTask {
  /** All of this tokenizer. */
  readonly items: readonly EncodeItem[]
  readonly tokenizer: string
  /** The thread opens it on first use. */
  readonly image: TokenizerImage
  /** All registered tokenizers; a thread drops others. */
  readonly registered: readonly string[]
}

export interface EncoderResult {
  readonly results: readonly ItemResult[]
  /** Null while no cache is enabled. */
  readonly report: CacheReport | null
}

/** Cache counters of a tokenizer since its last report. */
export type CacheReport = CacheCounts & { readonly tokenizer: string; readonly bytes: number }
