/** Events of the tool loop, and the tools and results that they name. */
import type { GatewayError } from '../../errors/gateway-error.ts'
import type {
  FinishReason,
  GenerationStarted,
  GenerationUsage,
  NativeDelta,
  TokenLogprob,
} from './generation.ts'
import type { NativeAnswer, NativeObject } from './generation-request.ts'

/** A built-in tool type that an operator maps to a server. */
export type BuiltInType = 'web_search' | 'code_interpreter' | 'file_search'

/** The tool of a call, by the server's name. */
export type CalledTool =
  | { readonly kind: 'mcp'; readonly label: string; readonly name: string }
  | { readonly kind: 'built_in'; readonly type: BuiltInType }

/** A tool in the list that clients get. */
export interface ListedTool {
  readonly name: string
  readonly description: string | null
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** As the server sent them; null if it sent none. */
  readonly annotations: Readonly<Record<string, unknown>> | null
}

/** Why a call failed. */
export interface ToolCallError {
  readonly type: 'http_error' | 'mcp_protocol_error' | 'mcp_tool_execution_error'
  /** HTTP status or JSON-RPC code; 0 for neither. */
  readonly code: number
  readonly message: string
}

/** A question of a tool server to its user, which ended a call; the call is run again with the answer. */
export interface ServerQuestion {
  /** Name of the answer among those that the server expects. */
  readonly key: string
  /** Parameters of `elicitation/create`: a message, and the schema of the answer or a URL. */
  readonly params: Readonly<Record<string, unknown>>
  /** Opaque; sent back to the server, and not shown to clients. Null if the server sent none. */
  readonly requestState: string | null
  /** The server that asked, without credentials; only it gets the answer. */
  readonly server: string
}

/** How a call ended. */
export interface ToolCallResult {
  /** `incomplete`: the model's answer was cut off before the call was run, or the server asked a question. */
  readonly status: 'completed' | 'failed' | 'incomplete'
  /** Output of the tool as text; empty if it failed. */
  readonly output: string
  /** Null unless the call failed. */
  readonly error: ToolCallError | null
  /** What the model gets: the output or the error message. */
  readonly modelText: string
  /** Structured output beside the text; null if there is none. */
  readonly structured: unknown
  /** The call waits for the answer to it. */
  readonly question?: ServerQuestion
  readonly durationMs: number
}

/**
 * Events of a turn, in order. `index` counts the output items from 0 over all iterations, without gaps, in order of their
 * start. An item starts and ends with one event each; only the calls of one generation may overlap.
 */
export type ToolLoopEvent =
  /** Of the first generation only. */
  | { readonly type: 'started'; readonly started: GenerationStarted }
  | { readonly type: 'list_started'; readonly index: number; readonly label: string }
  | {
      readonly type: 'list_done'
      readonly index: number
      readonly label: string
      readonly tools: readonly ListedTool[]
      /** To be stored with the item; see `ListedServer`. */
      readonly fingerprint: string
    }
  | {
      readonly type: 'list_failed'
      readonly index: number
      readonly label: string
      readonly error: ToolCallError
    }
  | {
      readonly type: 'item_started'
      readonly index: number
      readonly item: 'message' | 'reasoning'
      /** As of the generation's event; of workers that have such items only. */
      readonly members?: NativeObject
    }
  | {
      readonly type: 'text' | 'reasoning'
      readonly index: number
      readonly delta: string
      readonly logprobs: readonly TokenLogprob[] | null
      /** As of the generation's event; of reasoning only. */
      readonly isBreak?: boolean
      readonly form?: 'text' | 'summary'
      /** As of the generation's event. */
      readonly members?: NativeObject
      readonly source?: NativeDelta
    }
  | {
      readonly type: 'refusal'
      readonly index: number
      readonly delta: string
      readonly members?: NativeObject
      readonly source?: NativeDelta
    }
  /** As of the generation's event. */
  | {
      readonly type: 'annotation'
      readonly index: number
      readonly annotation: unknown
      readonly engine?: string
    }
  | { readonly type: 'reasoning_signature'; readonly index: number; readonly signature: string }
  /** As of the generation's event. */
  | { readonly type: 'part_done'; readonly index: number; readonly part: NativeObject }
  | {
      readonly type: 'item_done'
      readonly index: number
      readonly isCut: boolean
      readonly members?: NativeObject
    }
  /** Begins and ends an item of a kind that only the worker and the client know; it is complete at its end. */
  | {
      readonly type: 'native_started' | 'native_item'
      readonly index: number
      /** Name of the engine adapter whose format it has. */
      readonly engine: string
      readonly item: NativeObject
    }
  /** An event that only the worker and the client know, of an item. */
  | { readonly type: 'native_event'; readonly index: number; readonly event: NativeObject }
  /** The same, of the whole answer. */
  | { readonly type: 'native_answer_event'; readonly event: NativeObject }
  /** A call that the client runs. */
  | {
      readonly type: 'function_started'
      readonly index: number
      readonly callId: string
      readonly name: string
      /** As of the generation's event. */
      readonly members?: NativeObject
    }
  | {
      readonly type: 'function_arguments'
      readonly index: number
      readonly delta: string
      readonly members?: NativeObject
      readonly source?: NativeDelta
    }
  | {
      readonly type: 'function_done'
      readonly index: number
      readonly callId: string
      readonly name: string
      readonly arguments: string
      readonly isCut: boolean
      readonly members?: NativeObject
    }
  /** A call that the gateway runs. */
  | {
      readonly type: 'call_started'
      readonly index: number
      readonly callId: string
      readonly tool: CalledTool
      /** The approval that allowed it; null if none was needed. */
      readonly approvalId: string | null
    }
  | { readonly type: 'call_arguments'; readonly index: number; readonly delta: string }
  | { readonly type: 'call_arguments_done'; readonly index: number; readonly arguments: string }
  /** The tool starts to run. */
  | { readonly type: 'call_running'; readonly index: number; readonly tool: CalledTool }
  | {
      readonly type: 'call_done'
      readonly index: number
      readonly callId: string
      readonly tool: CalledTool
      readonly arguments: string
      readonly approvalId: string | null
      readonly result: ToolCallResult
    }
  /** The call needs approval, or an answer to the question of its server; the turn ends without running it. */
  | {
      readonly type: 'approval_requested'
      readonly index: number
      readonly callId: string
      readonly label: string
      readonly name: string
      readonly arguments: string
      readonly question?: ServerQuestion
    }
  /**
   * A call of a tool that is hidden from clients. It has no index, and is stored only for the history of the next turn.
   */
  | {
      readonly type: 'hidden_call'
      readonly callId: string
      readonly tool: CalledTool
      readonly arguments: string
      readonly modelText: string
    }
  | {
      readonly type: 'finished'
      /** `handed_over`: the client has to run functions, to approve calls or to answer questions. `tool_limit`: see `atLimit`. */
      readonly reason: FinishReason | 'handed_over' | 'tool_limit'
      readonly matchedStop: string | number | null
      /** The last answer in the format of its worker, for requests with `GenerationRequest.native`. */
      readonly native?: NativeAnswer
      /** Sum of all iterations; null if no worker reported any. */
      readonly usage: GenerationUsage | null
      readonly iterations: number
      readonly toolCalls: number
    }
  /** Ends all open items. */
  | { readonly type: 'failed'; readonly error: GatewayError; readonly usage: GenerationUsage | null }

/** Receives the events of one turn. `finished` or `failed` is last, exactly once, unless the turn was aborted. Must not throw. */
export interface ToolLoopListener {
  onEvent(event: ToolLoopEvent): void
}
