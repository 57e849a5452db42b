/** The common form of requests and responses of all gRPC engines, and the interface of an engine. */
import type { EngineConstraint, EngineReport, PromptLogprob, Sampling } from '#kernel'

/** A generation request to an engine. */
export interface EngineRequest {
  readonly id: string
  readonly tokenIds: Uint32Array
  /** For the engine's log only. */
  readonly text: string
  /** Completed by the defaults of the engine. */
  readonly sampling: Sampling
  readonly kind: 'chat' | 'text'
  readonly choices: number
  readonly stream: boolean
  /** Null: no log probabilities. */
  readonly topLogprobs: number | null
  /** First prompt position whose log probability is requested; -1 for none. */
  readonly promptLogprobsFrom: number
  /** Token ids whose log probabilities are requested at each output position. */
  readonly logprobsOf: readonly number[]
  /** Set by the prefill worker of a pair; null if not requested. */
  readonly prefilled: { promptLogprobs: readonly PromptLogprob[] | null } | null
  /** Those of the client, and stop strings as token ids. */
  readonly stopTokenIds: readonly number[]
  readonly constraint: EngineConstraint | null
  readonly skipsSpecialTokens: boolean
  readonly thinks: boolean
  /** Requested data-parallel rank; null lets the engine choose. */
  readonly rank: number | null
  /** Only for prefill/decode pairs. */
  readonly pair?: PairParameters
}

export interface PairParameters {
  /** Bootstrap address and room. */
  readonly meeting?: {
    readonly bootstrapHost: string
    readonly bootstrapPort: number
    readonly bootstrapRoom: bigint
  }
  /** Transfer parameters in the format of the connector. */
  readonly transferJson?: string
  /** Address from which a connector without transfer parameters fetches. */
  readonly transferFrom?: { readonly remoteHost: string; readonly remotePort: number }
  /** Generates a single token. */
  readonly isPrefill?: boolean
}

export interface TopTokens {
  readonly values: readonly number[]
  readonly tokenIds: readonly number[]
}

/** One message of a response. Its lists are valid until the next message. */
export interface EngineOutput {
  /** Final message of a choice; otherwise a chunk. */
  isComplete: boolean
  index: number
  tokenIds: readonly number[]
  promptTokens: number
  completionTokens: number
  cachedTokens: number
  /** 0 if the engine does not count them. */
  reasoningTokens: number
  finishReason: string
  matchedStop: string | number | null
  /** Parallel to `tokenIds`; null if absent. */
  logprobs: readonly number[] | null
  top: readonly TopTokens[]
  /** Log probabilities of the requested ids, parallel to `tokenIds`. */
  named: readonly TopTokens[]
  /** Log probabilities of the prompt; null if absent. */
  promptLogprobs: readonly PromptLogprob[] | null
  /** Transfer parameters for the decode worker; null if absent. */
  transferJson: string | null
}

/** Paths of the methods of a generated service: those that all engines have, and those of some. */
export type EnginePaths = Readonly<
  Record<'Generate' | 'Abort' | 'HealthCheck' | 'GetModelInfo' | 'GetServerInfo' | 'GetTokenizer', string>
> & {
  readonly [Name in
    | 'GetLoads'
    | 'Embed'
    | 'FlushCache'
    | 'StartProfile'
    | 'StopProfile'
    | 'SubscribeKvEvents']?: string
}

/** Messages and features of one engine. */
export interface Runtime {
  readonly name: string
  readonly paths: EnginePaths
  /** Support for stop strings: by the engine, or as single token ids only. The gateway searches for the others. */
  readonly stopStrings: 'supported' | 'ids-only'
  readonly maxChoices: number
  /** How prefill/decode pairs connect: by a bootstrap address, or by transfer parameters that the gateway relays. Null: unsupported. */
  readonly pairing:
    | { readonly kind: 'bootstrap'; readonly roomBits: 31 | 63 }
    | { readonly kind: 'transfer' }
    | null
  /** Token counts of streamed messages are per message instead of cumulative. */
  readonly countsByMessage: boolean
  /** Settings that its messages lack, and without which a request is still served. */
  readonly lacks?: readonly (keyof Sampling)[]
  /** Supports log probabilities of requested token ids. */
  readonly reportsNamedLogprobs: boolean
  /** The sampling defaults that the engine reports apply to unset parameters. */
  readonly hasDefaults: boolean
  /**
   * Whether a constraint starts after the reasoning instead of at the first token.
   * @param thinks whether reasoning was requested
   * @param labels of the worker
   */
  constraintWaits?(thinks: boolean, labels: Readonly<Record<string, string>>): boolean
  /** A parameter of the request that the engine does not support; null if none. */
  unsupportedParameter(request: EngineRequest): string | null
  encodeGenerate(request: EngineRequest): Buffer
  encodeAbort(id: string): Buffer
  /** @throws WireError */
  readResponse(message: Buffer): EngineOutput
  /** @returns null if healthy, else why not */
  readHealth(message: Buffer): string | null
  /** @throws WireError, as the next one */
  readModelInfo(message: Buffer): object
  readServerInfo(message: Buffer): object
  readLoads?(message: Buffer): EngineReport | null
  /** Absent if the engine does not support embeddings. */
  readonly embed?: {
    encode(id: string, tokenIds: Uint32Array, text: string): Buffer
    read(message: Buffer): { readonly values: readonly number[]; readonly promptTokens: number }
  }
}
