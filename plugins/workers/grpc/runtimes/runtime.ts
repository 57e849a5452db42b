/** What the adapters of the engines have in common: one question and one answer, whatever the fields are called. */
import type { EngineConstraint, EngineReport, PromptLogprob, Sampling } from '#kernel'

/** A generation as it is asked of an engine. */
export interface Ask {
  readonly id: string
  readonly tokenIds: Uint32Array
  /** For the engine's log only. */
  readonly text: string
  /** With the engine's own defaults where the client said nothing. */
  readonly sampling: Sampling
  readonly kind: 'chat' | 'text'
  readonly choices: number
  readonly stream: boolean
  /** Null: no log probabilities. */
  readonly topLogprobs: number | null
  /** Place in the prompt from which on its tokens' log probabilities are wanted; -1: nowhere. */
  readonly promptLogprobsFrom: number
  /** Ids whose log probabilities are wanted at each place of the output. */
  readonly logprobsOf: readonly number[]
  /** Filled by the prefill half of a pair; null where they are not wanted. */
  readonly prefilled: { promptLogprobs: readonly PromptLogprob[] | null } | null
  /** Stops at these, the client's and those that its stop strings became. */
  readonly stopTokenIds: readonly number[]
  readonly constraint: EngineConstraint | null
  readonly skipsSpecialTokens: boolean
  readonly thinks: boolean
  /** Data-parallel rank that is wanted; null leaves it to the engine. */
  readonly rank: number | null
  /** What the two halves of a pair need to meet; absent elsewhere. */
  readonly pair?: PairData
}

export interface PairData {
  /** Where the prefill half is met, for engines that meet by address. */
  readonly meeting?: { readonly host: string; readonly port: number; readonly room: bigint }
  /** Hand-over in a connector's own words. */
  readonly transferJson?: string
  /** Where a connector that knows no words of its own fetches from. */
  readonly transferFrom?: { readonly host: string; readonly port: number }
  /** One token is all that this half makes. */
  readonly isPrefill?: boolean
}

export interface TopTokens {
  readonly values: readonly number[]
  readonly tokenIds: readonly number[]
}

/** One message of an answer. Its lists are the reader's until the next message. */
export interface EngineReply {
  /** The choice is whole; otherwise more of it. */
  isComplete: boolean
  index: number
  tokenIds: readonly number[]
  promptTokens: number
  completionTokens: number
  cachedTokens: number
  /** 0 where the engine does not count. */
  reasoningTokens: number
  finishReason: string
  matchedStop: string | number | null
  /** Parallel to `tokenIds`; null when none came. */
  logprobs: readonly number[] | null
  top: readonly TopTokens[]
  /** Of the ids that were asked for, parallel to `tokenIds` too. */
  named: readonly TopTokens[]
  /** Of the prompt; null when none came. */
  promptLogprobs: readonly PromptLogprob[] | null
  /** A connector's words for the other half of a pair; null for none. */
  transferJson: string | null
}

export interface EnginePaths {
  readonly generate: string
  readonly abort: string
  readonly health: string
  readonly modelInfo: string
  readonly serverInfo: string
  readonly loads?: string
  readonly embed?: string
  readonly flushCache?: string
  readonly startProfile?: string
  readonly stopProfile?: string
  readonly kvEvents?: string
}

export interface Embedding {
  readonly values: readonly number[]
  readonly promptTokens: number
}

/** One kind of engine: its messages, and what it can do. Pure. */
export interface Runtime {
  readonly name: string
  readonly paths: EnginePaths
  /** What engines do with stop strings: compare them themselves, know ids only, or refuse them. */
  readonly stopStrings: 'takes' | 'ids-only' | 'refuses'
  readonly maxChoices: number
  /** How two of these engines share a request: they meet by themselves, or the gateway carries a message. Null: not at all. */
  readonly pairing:
    | { readonly kind: 'meets'; readonly roomBits: 31 | 63 }
    | { readonly kind: 'hands-over' }
    | null
  /** Counts in streamed messages are those of the message; elsewhere of the choice so far. */
  readonly countsByMessage: boolean
  /** Log probabilities of ids that the client names. */
  readonly tellsNamedLogprobs: boolean
  /** The engine's own sampling defaults hold for what the client leaves out. */
  readonly hasDefaults: boolean
  /**
   * A constraint begins behind the reasoning; without it, at the first token.
   * @param thinks what the engine was told
   * @param labels of the worker
   */
  constraintWaits?(thinks: boolean, labels: Readonly<Record<string, string>>): boolean
  /** Parameters that the client gave and the engine has no field for. */
  lacks(ask: Ask): string | null
  encodeGenerate(ask: Ask): Buffer
  encodeAbort(id: string): Buffer
  /** @throws WireError */
  readReply(message: Buffer): EngineReply
  /** @returns null when it is well, else why not */
  readHealth(message: Buffer): string | null
  readModelInfo(message: Buffer): Record<string, unknown>
  readServerInfo(message: Buffer): Record<string, unknown>
  readLoads?(message: Buffer): EngineReport
  encodeEmbed?(id: string, tokenIds: Uint32Array, text: string): Buffer
  readEmbed?(message: Buffer): Embedding
}
