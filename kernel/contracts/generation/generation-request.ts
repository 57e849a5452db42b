/**
 * The internal request: every client format is converted to it, and every engine adapter converts it to the requests of its
 * workers. Messages, parts and tools keep the names of the chat format; settings have our own names. Immutable: the tool loop
 * makes a new request for each generation.
 */

/** Author of a message. */
export type ChatRole = 'system' | 'developer' | 'user' | 'assistant' | 'tool'

/** Part of a message. Other kinds are passed on unread, for workers that know them. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'image_url'
      readonly image_url: { readonly url: string; readonly detail?: string }
      /** Of an image that a tool returned: text for models that cannot see; empty if the result has one already. */
      readonly unseen?: string
    }
  | { readonly type: 'input_audio'; readonly input_audio: { readonly data: string; readonly format: string } }
  | { readonly type: 'video_url'; readonly video_url: { readonly url: string } }
  | {
      readonly type: 'file'
      /** Exactly one of the first three. */
      readonly file: {
        readonly file_id?: string
        readonly file_url?: string
        readonly file_data?: string
        readonly filename?: string
      }
    }
  | CarriedPart

/** A part of a kind that the gateway does not read. */
export interface CarriedPart {
  readonly type: `x-${string}`
  /** The part as the client sent it. */
  readonly value: unknown
}

/** A call of a function by the model. */
export interface ChatToolCall {
  /** Opaque data of the vendor whose model made the call, as in the event of the call. */
  readonly extra_content?: NativeObject
  readonly id: string
  readonly type: 'function'
  /** `arguments` is the model's text, unchanged and not always JSON. */
  readonly function: { readonly name: string; readonly arguments: string }
  /** Of a custom tool: `arguments` are those of the function that stands for it. Default false. */
  readonly isCustom?: boolean
}

/** An object in the format of an engine adapter. */
export type NativeObject = Readonly<Record<string, unknown>>

/** A turn in the format of an engine adapter. */
export interface NativeContent {
  /** Name of the only adapter that can read it. */
  readonly engine: string
  /** Complete and in order. */
  readonly content: readonly NativeObject[]
}

/** A complete answer in the format of an engine adapter. */
export interface NativeAnswer extends Omit<NativeContent, 'content'> {
  /** Complete and in order; null if its texts were edited. */
  readonly content: NativeContent['content'] | null
  /** Why it ended; null if unknown. */
  readonly reason: string | null
  /** Of the answer as a whole, beside its content; the client's format decides which ones it passes on. */
  readonly members?: NativeObject
}

/** One message of a chat. */
export interface ChatMessage {
  readonly role: ChatRole
  /** Null: an assistant turn of tool calls alone. */
  readonly content: string | readonly ContentPart[] | null
  readonly name?: string
  /** Assistant: its reasoning, for engines whose templates need it back. */
  readonly reasoning_content?: string
  /** Assistant: the vendor's signature of `reasoning_content`; sent back to that vendor only. */
  readonly reasoning_signature?: string
  /** Assistant: opaque data of the vendor about text and reasoning, as in the event of the end of the turn. */
  readonly extra_content?: NativeObject
  /** Assistant: text of a refusal. */
  readonly refusal?: string
  readonly tool_calls?: readonly ChatToolCall[]
  /** Assistant: the turn in the worker's format. Sent back in place of the other members, with new call ids, if the adapter reads it. */
  readonly native?: NativeContent
  /** Tool: id of the call whose result this is. */
  readonly tool_call_id?: string
  /** Tool: the call failed; formats without such a flag state it in the text. */
  readonly is_error?: boolean
}

/** A function that the model may call. */
export interface ChatTool {
  readonly type: 'function'
  /** Stands for a tool of `NativeRequest.tools`: the adapter of that format sends the tool itself. Default false. */
  readonly isStandIn?: boolean
  /** Stands for a custom tool: its other members in the Responses format, for adapters of formats that have such tools. */
  readonly custom?: NativeObject
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

/** Undefined members have the engine's default. */
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
  /** Keeps the stop string in the text. */
  readonly includesStop?: boolean
}

/** How much the model reasons before it answers. */
export interface ReasoningOptions {
  /** Undefined: the model's default. */
  readonly isEnabled?: boolean
  /** `low`, `medium`, `high` or another value that the worker knows. */
  readonly effort?: string
  readonly budgetTokens?: number
}

/** The input of the model. */
export type Prompt =
  | { readonly kind: 'chat'; readonly messages: readonly ChatMessage[] }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tokens'; readonly tokenIds: Uint32Array }

/**
 * A request in the client's format beside the internal form: for workers that speak the format, which then get also what the
 * internal form cannot express.
 */
export interface NativeRequest {
  /** Name of the engine adapter that reads it, which is preferred if it accepts a worker. */
  readonly engine: string
  /** Number of messages of the internal prompt that `prompt` covers; later ones were added since. */
  readonly messageCount: number
  /** The prompt in the client's format, converted on the first call. */
  prompt(): readonly unknown[]
  /** A copy of the other members of the body, which the adapter may change. */
  members(): Record<string, unknown>
  /** Tools that only such a worker knows, as the client declared them. */
  readonly tools: readonly Readonly<Record<string, unknown>>[]
  /** Functions of the client as it declared them, by the declaration in `GenerationRequest.tools`. */
  readonly functions?: ReadonlyMap<ChatTool['function'], NativeObject>
  /** A choice that names such a tool, for the first request of a turn; null for none. */
  readonly toolChoice: unknown
}

/** A request to generate text, in one form for all client formats and engines. */
export interface GenerationRequest {
  /** As the client names it; the balance resolves aliases. Null takes any worker. */
  readonly model: string | null
  readonly prompt: Prompt
  readonly tools: readonly ChatTool[]
  /** Null if the client sets none, which means `auto` if there are tools. */
  readonly toolChoice: ToolChoice | null
  readonly parallelToolCalls?: boolean
  readonly constraint: OutputConstraint | null
  readonly sampling: Sampling
  readonly reasoning: ReasoningOptions | null
  /** Number of choices, at least 1. */
  readonly choices: number
  /** Log probabilities of each output token, with this many alternatives; null for none. */
  readonly topLogprobs: number | null
  /** Requests log probabilities of the prompt's tokens from this index on, if the engine reports them. */
  readonly promptLogprobsFrom?: number
  /** Requests log probabilities of these ids for each output token; rejected for engines that cannot report them. */
  readonly logprobsOf?: readonly number[]
  /** Requests token ids in the events. */
  readonly wantsTokenIds?: boolean
  /** For chat templates. */
  readonly templateArguments?: Readonly<Record<string, unknown>>
  /** The answer continues the last message, which is an assistant's. */
  readonly continuesLastMessage?: boolean
  /** The client's id of its user, for workers that use it. */
  readonly user?: string
  /** The client's cache key for requests with a common prefix, for workers and policies. */
  readonly cacheKey?: string
  /** Members of a chat body that the gateway does not read; chat workers get them unchanged. */
  readonly carried?: ReadonlyMap<string, unknown>
  readonly native?: NativeRequest
}
