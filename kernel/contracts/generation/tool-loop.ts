/**
 * The tool loop: a turn (a generation request, the gateway's tools that it may use, limits) produces the events of all its
 * generations and tool calls under one output index. It depends on no client format and on no kind of tool server.
 */
import type { GatewayError } from '../../errors/gateway-error.ts'
import type { RequestContext } from '../request.ts'
import { token } from '../token.ts'
import type { WorkerEntry } from '../worker.ts'
import type { FinishReason, GenerationStarted, GenerationUsage, TokenLogprob } from './generation.ts'
import type { GenerationRequest, NativeAnswer, NativeObject } from './generation-request.ts'

/** Selects tools of a server by name and by the server's annotations. */
export interface ToolFilter {
  /** Exact names of the server; an empty list selects none. */
  readonly toolNames?: readonly string[]
  /** Selects only tools that the server marks as read-only (or only those that it does not). */
  readonly isReadOnly?: boolean
}

/** Which tools need approval. In the object form `never` takes precedence, and tools in neither list need approval. */
export type ApprovalRule = 'always' | 'never' | { readonly always?: ToolFilter; readonly never?: ToolFilter }

/** A tool server that a request uses. */
export interface McpToolRequest {
  readonly kind: 'mcp'
  /** A letter, then letters, digits, `-` and `_`, at most 64; unique in the request, whatever its case. */
  readonly label: string
  /** Null: the configured server of that label. */
  readonly serverUrl: string | null
  /** Prefix of each tool's description. */
  readonly description?: string
  /** A token, with or without `Bearer `. Held in memory only, for the lifetime of the connection. */
  readonly authorization?: string
  /** Held like `authorization`. */
  readonly headers?: ReadonlyMap<string, string>
  /** Default: all. */
  readonly allowedTools?: ToolFilter
  /** Exact names that are excluded. */
  readonly deniedTools?: readonly string[]
  /** Default: the operator's setting, `never` if none. */
  readonly approval?: ApprovalRule
  /** Field of the request, such as `tools[0]`, for errors. */
  readonly param: string
}

/** A built-in tool type that an operator maps to a server. */
export type BuiltInType = 'web_search' | 'code_interpreter' | 'file_search'

export interface BuiltInToolRequest {
  readonly kind: 'built_in'
  readonly type: BuiltInType
  /** Other members of the declaration, such as `user_location`. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly param: string
}

export type GatewayTool = McpToolRequest | BuiltInToolRequest

/** The tools that the model must, may or must not call. Functions have the client's names. */
export type LoopToolChoice =
  | { readonly mode: 'auto' | 'none' | 'required' }
  | { readonly mode: 'one'; readonly tool: ToolReference }
  | { readonly mode: 'allowed'; readonly tools: readonly ToolReference[]; readonly isRequired: boolean }

export type ToolReference =
  | { readonly kind: 'function'; readonly name: string }
  /** Without a name: any tool of the server. With a null label: the tool of that name on any server. */
  | { readonly kind: 'mcp'; readonly label: string; readonly name?: string }
  | { readonly kind: 'mcp'; readonly label: null; readonly name: string }
  | { readonly kind: 'built_in'; readonly type: BuiltInType }

/**
 * The client's decision on a call that needed approval. The call is run or rejected before the first generation; call and
 * result follow the history.
 */
export interface ApprovalAnswer {
  readonly approvalId: string
  readonly label: string
  readonly name: string
  /** As the model wrote them. */
  readonly arguments: string
  readonly isApproved: boolean
  readonly reason?: string
}

/** A server whose tool list the client got in an earlier turn. */
export interface ListedServer {
  readonly label: string
  /** Of the list's `list_done` event; a list that has changed since is sent again. Null: never sent again. */
  readonly fingerprint: string | null
}

/** The tool of a call in the history, whose name there is replaced by the current one. */
export type CallOrigin =
  | { readonly kind: 'mcp'; readonly label: string; readonly name: string }
  | { readonly kind: 'built_in'; readonly type: BuiltInType }

export interface LoopLimits {
  /** Calls that the gateway runs in this turn; null: only the operator's limits apply. */
  readonly maxToolCalls: number | null
  /** Generations of this turn; can only lower the operator's limit. Null: the operator's limit. */
  readonly maxIterations?: number | null
  /**
   * At a limit, `answer` runs a last generation without the gateway's tools; `stop` ends the turn with the reason
   * `tool_limit`.
   */
  readonly atLimit: 'answer' | 'stop'
}

/** One turn: from a client's request to the end of its answer. */
export interface ToolTurn {
  /** With the whole history; `tools` are the client's functions, `toolChoice` is ignored. */
  readonly request: GenerationRequest
  readonly toolChoice: LoopToolChoice | null
  readonly tools: readonly GatewayTool[]
  readonly approvals: readonly ApprovalAnswer[]
  readonly listed: readonly ListedServer[]
  /** By id of the call in the history. */
  readonly origins: ReadonlyMap<string, CallOrigin>
  readonly limits: LoopLimits
  /**
   * False if the client's format has no approvals: calls that need approval are then rejected with a message to the
   * model. Default true.
   */
  readonly canApprove?: boolean
  /** Requests streams from workers. */
  readonly stream: boolean
  /** Restricts the workers. */
  readonly accepts?: (worker: WorkerEntry) => boolean
}

/** A tool in the list that clients get. */
export interface ListedTool {
  readonly name: string
  readonly description: string | null
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** As the server sent them; null if it sent none. */
  readonly annotations: Readonly<Record<string, unknown>> | null
}

/** The tool of a call, by the server's name. */
export type CalledTool =
  | { readonly kind: 'mcp'; readonly label: string; readonly name: string }
  | { readonly kind: 'built_in'; readonly type: BuiltInType }

/** Why a call failed. */
export interface ToolCallError {
  readonly type: 'http_error' | 'mcp_protocol_error' | 'mcp_tool_execution_error'
  /** HTTP status or JSON-RPC code; 0 for neither. */
  readonly code: number
  readonly message: string
}

/** How a call ended. */
export interface ToolCallResult {
  /** `incomplete`: the model's answer was cut off before the call was run. */
  readonly status: 'completed' | 'failed' | 'incomplete'
  /** Output of the tool as text; empty if it failed. */
  readonly output: string
  /** Null unless the call failed. */
  readonly error: ToolCallError | null
  /** What the model gets: the output or the error message. */
  readonly modelText: string
  /** Structured output beside the text; null if there is none. */
  readonly structured: unknown
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
    }
  | { readonly type: 'refusal'; readonly index: number; readonly delta: string }
  | { readonly type: 'annotation'; readonly index: number; readonly annotation: unknown }
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
  | { readonly type: 'function_arguments'; readonly index: number; readonly delta: string }
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
  /** The call needs approval; the turn ends without running it. */
  | {
      readonly type: 'approval_requested'
      readonly index: number
      readonly callId: string
      readonly label: string
      readonly name: string
      readonly arguments: string
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
      /** `handed_over`: the client has to run functions or to approve calls. `tool_limit`: see `atLimit`. */
      readonly reason: FinishReason | 'handed_over' | 'tool_limit'
      readonly matchedStop: string | number | null
      /** The worker's own reason for the end of the last answer, if known. */
      readonly native?: Pick<NativeAnswer, 'engine' | 'reason'>
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

export interface RunningTurn {
  /** Pauses the worker; no further iteration begins. */
  pause(): void
  resume(): void
  /** Stops the worker and running tools; no events follow. Idempotent. */
  abort(): void
}

export interface ToolLoopService {
  /**
   * Checks a turn and starts it.
   * @throws GatewayError as `check`
   */
  run(ctx: RequestContext, turn: ToolTurn, listener: ToolLoopListener): RunningTurn
  /**
   * Rejects what can be rejected without a tool server, for turns that start later.
   * @throws GatewayError (400, 403) naming the `param`; unknown_mcp_server for an approved call of a server that the
   * tools do not declare
   */
  check(tenant: string, turn: Pick<ToolTurn, 'tools' | 'approvals'>): void
  /**
   * True if a built-in tool is mapped and the tenant may use it. Other declarations are echoed and otherwise ignored, or
   * rejected if `isStrict`.
   */
  hasBuiltIn(type: BuiltInType, tenant: string): boolean
  readonly isStrict: boolean
  /** True for a configured server that is hidden from clients: its declaration is omitted from every echo. */
  isInternal(label: string): boolean
}

export const ToolLoop = token<ToolLoopService>('tool-loop')

/** A call that is about to run. */
export interface GuardedCall {
  readonly tenant: string
  readonly requestId: string
  readonly model: string | null
  readonly tool: CalledTool
  /** URL of the server, without credentials; the label if the server is a configured one. */
  readonly server: string
  /** Parsed; must not be modified. */
  readonly arguments: Readonly<Record<string, unknown>>
}

export type GuardDecision =
  | { readonly action: 'continue' }
  /** The tool does not run; the model gets the text as the result. */
  | { readonly action: 'reject'; readonly text: string }
  /** The tool runs with these; the client gets the model's arguments. */
  | { readonly action: 'modify'; readonly arguments: Readonly<Record<string, unknown>> }

/** Checks calls before they run. */
export interface ToolCallGuard {
  /** Such as `wasm`; for logs. */
  readonly name: string
  /** An exception rejects the call. */
  check(call: GuardedCall): GuardDecision | Promise<GuardDecision>
}

/** Registry of guards, which run in order of registration. */
export interface ToolCallGuardsService {
  /** @returns a function that removes the guard */
  add(guard: ToolCallGuard): () => void
}

export const ToolCallGuards = token<ToolCallGuardsService>('tool-call-guards')
