/** Tools that the gateway calls, and the results of their calls. */

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
