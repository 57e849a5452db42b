/**
 * The tool loop: a turn (a generation request, the gateway's tools that it may use, limits) produces the events of all its
 * generations and tool calls as one choice. It depends on no client format and on no kind of tool server.
 */
import type { RequestContext } from '../request.ts'
import { token } from '../token.ts'
import type { WorkerEntry } from '../worker.ts'
import type { BuiltInType, CalledTool, ServerQuestion } from './called-tools.ts'
import type { Generation, GenerationListener } from './generation.ts'
import type { GenerationRequest } from './generation-request.ts'

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
  /** Questions of the server to its user (elicitation) reach the client. Default: they are declined. */
  readonly elicits?: boolean
  /** Field of the request, such as `tools[0]`, for errors. */
  readonly param: string
}

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
 * The client's decision on a call that needed approval, or its answer to a question of the server. The call is run or rejected
 * before the first generation; call and result follow the history.
 */
export interface ApprovalAnswer {
  readonly approvalId: string
  readonly label: string
  readonly name: string
  /** As the model wrote them. */
  readonly arguments: string
  /** Of a question: whether it is answered; the call is run in both cases. */
  readonly isApproved: boolean
  /** Of an answered question: the answer, JSON by the schema of the question. */
  readonly reason?: string
  /** As the call of this turn asked it; absent for approvals. */
  readonly question?: ServerQuestion
}

/** A server whose tool list the client got in an earlier turn. */
export interface ListedServer {
  readonly label: string
  /** Of the list's `list_done` event; a list that has changed since is sent again. Null: never sent again. */
  readonly fingerprint: string | null
}

export interface LoopLimits {
  /** Calls that the gateway runs in this turn; null: only the operator's limits apply. */
  readonly maxToolCalls: number | null
  /** Generations of this turn; can only lower the operator's limit. Null: the operator's limit. */
  readonly maxIterations?: number | null
  /**
   * At a limit, `answer` runs a last generation without the gateway's tools; `stop` ends the turn with `isAtToolLimit`.
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
  /** The tools of calls in the history, by id of the call; the current name of the tool replaces the one there. */
  readonly origins: ReadonlyMap<string, CalledTool>
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

export interface ToolLoopService {
  /**
   * Checks a turn and starts it. `abort` also stops running tools; while the response is held, no further generation begins.
   * @throws GatewayError as `check`
   */
  run(ctx: RequestContext, turn: ToolTurn, listener: GenerationListener): Generation
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
