/**
 * Tools that the gateway runs itself, as those who face clients use them: a turn goes in (a generation request, the tools
 * of the gateway that it may use, limits), the events of all its generations come out, with those of the tools between
 * them, under one output index. The loop knows no front format, and a front format knows no tool server.
 */
import type { GatewayError } from '../../errors/gateway-error.ts'
import type { RequestContext } from '../request.ts'
import { token } from '../token.ts'
import type { WorkerEntry } from '../worker.ts'
import type { FinishReason, GenerationStarted, GenerationUsage, TokenLogprob } from './generation.ts'
import type { GenerationRequest, NativeAnswer } from './generation-request.ts'

/** Which tools of a server: by name, and by what the server says of them. */
export interface ToolFilter {
  /** Exact names as the server has them; an empty list names none. */
  readonly toolNames?: readonly string[]
  /** Only those that the server calls read-only (or only those that it does not). */
  readonly isReadOnly?: boolean
}

/** When a person has to agree before a tool runs. Of the object form: `never` wins, and what neither names has to wait. */
export type ApprovalRule = 'always' | 'never' | { readonly always?: ToolFilter; readonly never?: ToolFilter }

/** A tool server that a request wants. */
export interface McpToolRequest {
  readonly kind: 'mcp'
  /** A letter, then letters, digits, `-` and `_`, at most 64; unique in the request, whatever its case. */
  readonly label: string
  /** Null: the server of that label in the configuration. */
  readonly serverUrl: string | null
  /** Stands before each tool's description. */
  readonly description?: string
  /** A token, with or without `Bearer `. Kept in memory only, as long as the connection lasts. */
  readonly authorization?: string
  /** Likewise. */
  readonly headers?: ReadonlyMap<string, string>
  /** Undefined: all. */
  readonly allowedTools?: ToolFilter
  /** Exact names that are left out of these. */
  readonly deniedTools?: readonly string[]
  /** Undefined: as the operator says, `never` by default. */
  readonly approval?: ApprovalRule
  /** Where the client wrote it, such as `tools[0]`, for errors. */
  readonly param: string
}

/** A kind of tool that models know by name and that an operator maps onto a server. */
export type BuiltInType = 'web_search' | 'code_interpreter' | 'file_search'

export interface BuiltInToolRequest {
  readonly kind: 'built_in'
  readonly type: BuiltInType
  /** What the declaration says beyond its type, such as `user_location`. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly param: string
}

export type GatewayTool = McpToolRequest | BuiltInToolRequest

/** What the model must, may and must not call. Functions go by the client's own names. */
export type LoopToolChoice =
  | { readonly mode: 'auto' | 'none' | 'required' }
  | { readonly mode: 'one'; readonly tool: ToolReference }
  | { readonly mode: 'allowed'; readonly tools: readonly ToolReference[]; readonly isRequired: boolean }

export type ToolReference =
  | { readonly kind: 'function'; readonly name: string }
  /** Without a name: any tool of that server. Without a label (null): the tool of that name, whichever server has it. */
  | { readonly kind: 'mcp'; readonly label: string; readonly name?: string }
  | { readonly kind: 'mcp'; readonly label: null; readonly name: string }
  | { readonly kind: 'built_in'; readonly type: BuiltInType }

/**
 * A person's answer to a call that had to wait. The call is run, or refused, before the model is asked; call and result
 * stand in the messages after the whole history.
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

/** A server whose tools the client has seen in an earlier turn. */
export interface ListedServer {
  readonly label: string
  /** Of the list's `tool_list_done`; a list that has changed since is shown again. Null: shown again never. */
  readonly fingerprint: string | null
}

/** Who made a call that stands in the history: its name there is replaced by the one that the model sees today. */
export type CallOrigin =
  | { readonly kind: 'mcp'; readonly label: string; readonly name: string }
  | { readonly kind: 'built_in'; readonly type: BuiltInType }

export interface LoopLimits {
  /** Calls that the gateway runs in this turn; null: only the operator's limits hold. */
  readonly maxToolCalls: number | null
  /** Model turns; null: the operator's limit. It can only be made smaller. */
  readonly maxIterations?: number | null
  /**
   * What happens at a limit. `answer`: one last turn without the gateway's tools. `stop`: the turn ends there, with the
   * reason `tool_limit`.
   */
  readonly atLimit: 'answer' | 'stop'
}

/** One turn: everything from a client's request to the end of its answer. */
export interface ToolTurn {
  /** With the whole history; `tools` are the client's own functions, `toolChoice` is ignored for the one below. */
  readonly request: GenerationRequest
  readonly toolChoice: LoopToolChoice | null
  readonly tools: readonly GatewayTool[]
  readonly approvals: readonly ApprovalAnswer[]
  readonly listed: readonly ListedServer[]
  /** By id of the call in the history. */
  readonly origins: ReadonlyMap<string, CallOrigin>
  readonly limits: LoopLimits
  /**
   * False where the client has no way to be asked: calls that would have to wait for a person are not run, and the model
   * is told so. Default true.
   */
  readonly canApprove?: boolean
  /** Workers are asked for streams. */
  readonly stream: boolean
  /** Only these workers. */
  readonly accepts?: (worker: WorkerEntry) => boolean
}

/** A tool as clients are shown it. */
export interface ListedTool {
  readonly name: string
  readonly description: string | null
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** As its server gave them; null when it gave none. */
  readonly annotations: Readonly<Record<string, unknown>> | null
}

/** Who runs a call. Names are the server's own. */
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
  /** What the tool gave, as text; empty when it failed. */
  readonly output: string
  /** Null unless it failed. */
  readonly error: ToolCallError | null
  /** What the model was given: the output or the words of the error. */
  readonly modelText: string
  /** The tool's own structure beside its text; null when it gave none. */
  readonly structured: unknown
  readonly durationMs: number
}

/**
 * What happens in a turn, in order. `index` counts the output items from 0 over all iterations, without gaps, in the
 * order in which they begin. An item begins with one event and ends with one event, in between come only its own, except
 * that the calls of one model turn may overlap.
 */
export type ToolLoopEvent =
  /** Of the first generation; those of later ones are not told. */
  | { readonly type: 'started'; readonly started: GenerationStarted }
  | { readonly type: 'list_started'; readonly index: number; readonly label: string }
  | {
      readonly type: 'list_done'
      readonly index: number
      readonly label: string
      readonly tools: readonly ListedTool[]
      /** To be kept with the item; see `ListedServer`. */
      readonly fingerprint: string
    }
  | {
      readonly type: 'list_failed'
      readonly index: number
      readonly label: string
      readonly error: ToolCallError
    }
  | { readonly type: 'item_started'; readonly index: number; readonly item: 'message' | 'reasoning' }
  | {
      readonly type: 'text' | 'reasoning'
      readonly index: number
      readonly delta: string
      readonly logprobs: readonly TokenLogprob[] | null
    }
  | { readonly type: 'refusal'; readonly index: number; readonly delta: string }
  | { readonly type: 'annotation'; readonly index: number; readonly annotation: unknown }
  | { readonly type: 'reasoning_signature'; readonly index: number; readonly signature: string }
  | { readonly type: 'item_done'; readonly index: number; readonly isCut: boolean }
  /** Of a kind that only the worker and the client know; begins and ends with this. */
  | {
      readonly type: 'native_item'
      readonly index: number
      /** Name of the engine adapter whose words they are. */
      readonly engine: string
      readonly item: Readonly<Record<string, unknown>>
    }
  /** A call of the client's own function; it is the client's to run. */
  | {
      readonly type: 'function_started'
      readonly index: number
      readonly callId: string
      readonly name: string
    }
  | { readonly type: 'function_arguments'; readonly index: number; readonly delta: string }
  | {
      readonly type: 'function_done'
      readonly index: number
      readonly callId: string
      readonly name: string
      readonly arguments: string
      readonly isCut: boolean
    }
  /** A call that the gateway runs. */
  | {
      readonly type: 'call_started'
      readonly index: number
      readonly callId: string
      readonly tool: CalledTool
      /** The answer that let it run; null when none was needed. */
      readonly approvalId: string | null
    }
  | { readonly type: 'call_arguments'; readonly index: number; readonly delta: string }
  | { readonly type: 'call_arguments_done'; readonly index: number; readonly arguments: string }
  /** The tool is at work from here on. */
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
  /** A person has to agree first; the turn ends without running it. */
  | {
      readonly type: 'approval_requested'
      readonly index: number
      readonly callId: string
      readonly label: string
      readonly name: string
      readonly arguments: string
    }
  /**
   * A call of a tool that clients must not see. It has no index and is shown nowhere; who stores the turn keeps it for the
   * history of the next one.
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
      /** `handed_over`: functions or approvals wait for the client. `tool_limit`: see `atLimit`. */
      readonly reason: FinishReason | 'handed_over' | 'tool_limit'
      readonly matchedStop: string | number | null
      /** Why the last answer ended, in its worker's own words; absent where they are not known. */
      readonly native?: Pick<NativeAnswer, 'engine' | 'reason'>
      /** Summed over all iterations; null when no worker told. */
      readonly usage: GenerationUsage | null
      readonly iterations: number
      readonly toolCalls: number
    }
  /** Open items end here. */
  | { readonly type: 'failed'; readonly error: GatewayError; readonly usage: GenerationUsage | null }

/** Hears one turn. `finished` or `failed` comes last, exactly once, unless the turn was aborted. Must not throw. */
export interface ToolLoopListener {
  onEvent(event: ToolLoopEvent): void
}

/** A turn under way. */
export interface RunningTurn {
  /** A slow reader: the worker is held back, and no further iteration begins. */
  pause(): void
  resume(): void
  /** Gives up: the worker stops, running tools are told, nothing more is heard. Safe at any time, also twice. */
  abort(): void
}

export interface ToolLoopService {
  /**
   * Begins a turn, checked before.
   * @throws GatewayError as `check`
   */
  run(ctx: RequestContext, turn: ToolTurn, listener: ToolLoopListener): RunningTurn
  /**
   * Rejects what can be rejected without asking a tool server: for turns that begin later.
   * @throws GatewayError (400, 403) naming the `param`; unknown_mcp_server for an approved call of a server that the
   * tools do not declare
   */
  check(tenant: string, turn: Pick<ToolTurn, 'tools' | 'approvals'>): void
  /**
   * Whether a built-in tool is mapped here and this tenant may use it. A declaration of one that is not stays in the echo
   * and is left out of the request, unless `isStrict`: then it is an error.
   */
  hasBuiltIn(type: BuiltInType, tenant: string): boolean
  readonly isStrict: boolean
  /** True for a server of the configuration of which clients see nothing: its declaration is left out of every echo. */
  isInternal(label: string): boolean
}

export const ToolLoop = token<ToolLoopService>('tool-loop')

/** A call that is about to run, as guards see it. */
export interface GuardedCall {
  readonly tenant: string
  readonly requestId: string
  readonly model: string | null
  readonly tool: CalledTool
  /** Of the server; the label again when the server is one of the configuration. Never holds credentials. */
  readonly server: string
  /** Parsed; not to be changed in place. */
  readonly arguments: Readonly<Record<string, unknown>>
}

export type GuardDecision =
  | { readonly action: 'continue' }
  /** The tool does not run; the model is given the text in place of a result. */
  | { readonly action: 'reject'; readonly text: string }
  /** The tool runs with these; the client is shown what the model wrote. */
  | { readonly action: 'modify'; readonly arguments: Readonly<Record<string, unknown>> }

/** Looks at calls before they run. */
export interface ToolCallGuard {
  /** Such as `wasm`; for logs. */
  readonly name: string
  /** A guard that throws or rejects stops the call, as if it had been rejected. */
  check(call: GuardedCall): GuardDecision | Promise<GuardDecision>
}

/** Where guards are added, in `register` or later; they are asked in the order in which they came. */
export interface ToolCallGuardsService {
  /** @returns takes it out again */
  add(guard: ToolCallGuard): () => void
}

export const ToolCallGuards = token<ToolCallGuardsService>('tool-call-guards')
