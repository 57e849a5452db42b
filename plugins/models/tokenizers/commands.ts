/** Commands of the serving threads to control, and the replica that control publishes. */
import type { TokenizerRequest, TokenizerState } from '#kernel'
import { defineCommand, defineReplica } from '#kernel'
import type { EncodeItem, EncodeResult } from './encoder-thread.ts'
import type { TokenizerFacts } from './load-tokenizer.ts'

/** The caller, for the audit log. */
export interface Asker {
  /** Null when the routes are open. */
  readonly principal: string | null
  readonly requestId: string
}

export interface TokenizerStatus {
  readonly id: string
  readonly state: TokenizerState
  readonly message: string
  /** Null until it is loaded. */
  readonly vocabSize: number | null
}

export const AddTokenizer = defineCommand<{ body: unknown; asker: Asker }, TokenizerStatus>('tokenizers.add')
/** Does nothing if the name is taken. */
export const EnsureTokenizer = defineCommand<TokenizerRequest, void>('tokenizers.ensure')
/** By id or name; null if it does not exist. */
export const StatusOfTokenizer = defineCommand<string, TokenizerStatus | null>('tokenizers.status')
/** By id or name; false if it is not loaded. */
export const RemoveTokenizer = defineCommand<{ idOrName: string; asker: Asker }, boolean>('tokenizers.remove')
/** The texts of one thread, in order. */
export const EncodeTexts = defineCommand<readonly EncodeItem[], readonly EncodeResult[]>('tokenizers.encode')

/** One loaded tokenizer. */
export interface TokenizerRecord {
  readonly id: string
  readonly name: string
  readonly source: string
  readonly facts: TokenizerFacts
}

/** In the order in which they were added. */
export const TokenizersReplica = defineReplica<{ readonly tokenizers: readonly TokenizerRecord[] }>(
  'tokenizers.loaded',
  { tokenizers: [] },
)
