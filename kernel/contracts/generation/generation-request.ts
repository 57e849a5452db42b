/**
 * The internal chat request: the one form into which every front format is turned and from which every engine adapter
 * makes what its workers want. Messages, parts and tools keep the names of the chat format, since they are only carried;
 * settings are our own data. Immutable: a tool loop makes a new request for each turn.
 */

export type ChatRole = 'system' | 'developer' | 'user' | 'assistant' | 'tool'

/** A piece of a message. Kinds beyond these are carried as they came, for workers that know them. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string; readonly detail?: string } }
  | { readonly type: 'input_audio'; readonly input_audio: { readonly data: string; readonly format: string } }
  | { readonly type: 'video_url'; readonly video_url: { readonly url: string } }
  | {
      readonly type: 'file'
      readonly file: { readonly file_id?: string; readonly file_data?: string; readonly filename?: string }
    }
  | CarriedPart

/** A part of a kind that nobody here reads. */
export interface CarriedPart {
  readonly type: `x-${string}`
  /** The part as the client sent it. */
  readonly value: unknown
}

export interface ChatToolCall {
  readonly id: string
  readonly type: 'function'
  /** `arguments` is text as the model wrote it, not always JSON; its bytes are never changed. */
  readonly function: { readonly name: string; readonly arguments: string }
}

/** A turn in the words of the format that an engine adapter speaks. */
export interface NativeContent {
  /** Name of the adapter: no other can read it. */
  readonly engine: string
  /** Whole and in order. */
  readonly content: readonly Readonly<Record<string, unknown>>[]
}

/** A whole answer likewise. */
export interface NativeAnswer extends NativeContent {
  /** Why it ended; null when it does not say. */
  readonly reason: string | null
}

export interface ChatMessage {
  readonly role: ChatRole
  /** Null: an assistant turn of tool calls alone. */
  readonly content: string | readonly ContentPart[] | null
  readonly name?: string
  /** Assistant: what it thought, for engines whose templates want it back inside one turn. */
  readonly reasoning_content?: string
  /** Assistant: proof of `reasoning_content` by the vendor that wrote it; goes back to that vendor only. */
  readonly reasoning_signature?: string
  /** Assistant: what it refused to do. */
  readonly refusal?: string
  readonly tool_calls?: readonly ChatToolCall[]
  /** Assistant: the whole turn as its worker wrote it. It goes back in these words, ids of calls apart, where it can be read. */
  readonly native?: NativeContent
  /** Tool: which call this is the result of. */
  readonly tool_call_id?: string
  /** Tool: the call failed; formats without the notion show it in the text. */
  readonly is_error?: boolean
}

export interface ChatTool {
  readonly type: 'function'
  readonly function: {
    readonly name: string
    readonly description?: string
    /** JSON Schema. */
    readonly parameters?: unknown
    readonly strict?: boolean
  }
}

/** `allowed`: only these functions may be called. */
export type ToolChoice =
  | { readonly mode: 'auto' | 'none' | 'required' }
  | { readonly mode: 'function'; readonly name: string }
  | { readonly mode: 'allowed'; readonly names: readonly string[]; readonly isRequired: boolean }

/** What the text must look like. */
export type OutputConstraint =
  | { readonly kind: 'json_object' }
  | {
      readonly kind: 'json_schema'
      readonly name: string
      readonly description?: string
      readonly schema: unknown
      readonly strict?: boolean
    }
  | { readonly kind: 'regex'; readonly pattern: string }
  | { readonly kind: 'ebnf'; readonly grammar: string }
  | { readonly kind: 'structural_tag'; readonly tag: unknown }

/** Undefined everywhere means: the client did not say, and the engine's default holds. */
export interface Sampling {
  readonly temperature?: number
  /** 0 to 1. */
  readonly topP?: number
  /** -1 disables. */
  readonly topK?: number
  readonly minP?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly repetitionPenalty?: number
  readonly seed?: number
  /** By token id. */
  readonly logitBias?: ReadonlyMap<number, number>
  /** Tokens of output, reasoning included. */
  readonly maxTokens?: number
  readonly minTokens?: number
  readonly stop?: readonly string[]
  readonly stopTokenIds?: readonly number[]
  readonly ignoreEos?: boolean
  readonly skipSpecialTokens?: boolean
  /** The stop string stays in the text. */
  readonly includesStop?: boolean
}

export interface ReasoningWish {
  /** Undefined: as the model does by itself. */
  readonly isEnabled?: boolean
  /** `low`, `medium`, `high` and whatever else a worker knows. */
  readonly effort?: string
  /** Tokens. */
  readonly budgetTokens?: number
}

/** What the model is to go on from. */
export type Prompt =
  | { readonly kind: 'chat'; readonly messages: readonly ChatMessage[] }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tokens'; readonly tokenIds: Uint32Array }

/**
 * A request in the words of its front format, beside the internal form: for workers that speak the same format and can be
 * told what the internal form has no words for.
 */
export interface NativeRequest {
  /** Name of the engine adapter that reads it; it is preferred where it accepts a worker. */
  readonly engine: string
  /** Messages at the beginning of the prompt that `prompt` stands for; those behind them were added later. */
  readonly messageCount: number
  /** The prompt in the format's words. Made when somebody asks, once. */
  prompt(): readonly unknown[]
  /** Further members of the body, which the adapter may add to and override. A copy. */
  members(): Record<string, unknown>
  /** Tools of kinds that only such a worker knows, as the client declared them. */
  readonly tools: readonly Readonly<Record<string, unknown>>[]
  /** In place of no choice: one that names such a tool. Null for none. Of a turn with tools, for the first request only. */
  readonly toolChoice: unknown
}

export interface GenerationRequest {
  /** As the client named it; aliases are resolved by the balance. Null takes any worker. */
  readonly model: string | null
  readonly prompt: Prompt
  readonly tools: readonly ChatTool[]
  /** Null: the client did not say, which means `auto` with tools and nothing without. */
  readonly toolChoice: ToolChoice | null
  readonly parallelToolCalls?: boolean
  readonly constraint: OutputConstraint | null
  readonly sampling: Sampling
  readonly reasoning: ReasoningWish | null
  /** Answers to make. Default 1. */
  readonly choices: number
  /** Log probabilities of each output token, with this many alternatives; null for none. */
  readonly topLogprobs: number | null
  /** Log probabilities of the prompt's tokens from this place on are wanted too, where the engine tells them; absent: none. */
  readonly promptLogprobsFrom?: number
  /** Log probabilities of these ids too, at each place of the output; engines that cannot tell them refuse. */
  readonly logprobsOf?: readonly number[]
  /** Token ids of output are wanted in the events. */
  readonly wantsTokenIds?: boolean
  /** For chat templates. */
  readonly templateArguments?: Readonly<Record<string, unknown>>
  /** The last message is an assistant's, and the answer goes on from its end. */
  readonly continuesLastMessage?: boolean
  /** The client's word for its own user; for workers that want it. */
  readonly user?: string
  /** The same word for requests that begin alike, for workers and policies that cache by it. */
  readonly cacheKey?: string
  /** Members of a chat body that nobody here reads: a chat worker gets them as they came. Own data properties only. */
  readonly carried?: ReadonlyMap<string, unknown>
  readonly native?: NativeRequest
}
