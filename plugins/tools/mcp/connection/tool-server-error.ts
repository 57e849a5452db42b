/** What goes wrong with a tool server, in words that hold no address, no credential and no stack. */

import { ANSWER_BROKEN, SERVER_CLOSED } from '../net/answer-stream.ts'

/** The three kinds that clients know. */
export type ToolErrorType = 'http_error' | 'mcp_protocol_error' | 'mcp_tool_execution_error'

export class ToolServerError extends Error {
  readonly type: ToolErrorType
  /** HTTP status or JSON-RPC code; 0 when there is neither. */
  readonly code: number
  /** The server no longer knows the session: a new connection may do. Nothing was executed. */
  readonly isSessionLost: boolean

  constructor(
    type: ToolErrorType,
    code: number,
    message: string,
    options: { isSessionLost?: boolean; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ToolServerError'
    this.type = type
    this.code = code
    this.isSessionLost = options.isSessionLost ?? false
  }

  /** The connection broke under the request. */
  get isClosed(): boolean {
    return this.message === SERVER_CLOSED
  }
}

/** As the protocol library says it; servers use the same codes for other things. */
const LIBRARY_WORDS: ReadonlyMap<string, string> = new Map([
  ['Request timed out', 'no answer in time'],
  ['Maximum total timeout exceeded', 'no answer in time'],
  ['Connection closed', SERVER_CLOSED],
])
const MAX_WORDS = 1_000

/** Makes any failure of the protocol library, of sockets and of our own guards one of ours. */
export function toToolServerError(error: unknown): ToolServerError {
  if (error instanceof ToolServerError) return error
  const { name, code, message } = readError(error)
  const options = { cause: error }
  if (name === 'UnreachableByRule') return new ToolServerError('http_error', 0, message, options)
  if (name === 'TooMuchData') return new ToolServerError('http_error', 0, message, options)
  if (name === 'UnauthorizedError')
    return new ToolServerError('http_error', 401, 'the server wants other credentials', options)
  if (name === 'McpError') return fromProtocol(Number(code), message, error)
  if (/^Error POSTing|^Streamable HTTP error|^SSE error/.test(message) && Number(code) >= 100)
    return new ToolServerError('http_error', Number(code), `the server answered ${String(code)}`, {
      cause: error,
      isSessionLost: code === 404,
    })
  if (/^OAuth client information is bound/.test(message))
    return new ToolServerError(
      'http_error',
      401,
      'its authorization server is not the configured one',
      options,
    )
  if (error instanceof Error && 'errorCode' in error)
    return new ToolServerError('http_error', 401, 'the authorization server refused', options)
  const inner = findCause(error)
  if (inner !== null) return inner
  if (typeof code === 'string')
    return new ToolServerError('http_error', 0, `cannot reach the server (${code})`, options)
  if (message === SERVER_CLOSED || /^(no connection|no whole answer) within \d+ ms$/.test(message))
    return new ToolServerError('http_error', 0, message, options)
  return new ToolServerError('http_error', 0, 'cannot reach the server', options)
}

function fromProtocol(code: number, message: string, cause: unknown): ToolServerError {
  const words = message.replace(/^MCP error -?\d+: /, '').slice(0, MAX_WORDS)
  if (code === ANSWER_BROKEN) return new ToolServerError('http_error', 0, words, { cause })
  const ours = LIBRARY_WORDS.get(words)
  if (ours !== undefined) return new ToolServerError('http_error', 0, ours, { cause })
  return new ToolServerError('mcp_protocol_error', code, words, { cause })
}

function readError(error: unknown): { name: string; code: unknown; message: string } {
  if (!(error instanceof Error)) return { name: '', code: undefined, message: '' }
  // The protocol library's errors bear the name Error; their class tells more.
  const name = error.name === 'Error' ? error.constructor.name : error.name
  return { name, code: (error as { code?: unknown }).code, message: error.message }
}

/** Libraries wrap what our own guards throw. */
function findCause(error: unknown): ToolServerError | null {
  const cause = error instanceof Error ? error.cause : undefined
  const isOurs =
    cause instanceof Error && ['UnreachableByRule', 'TooMuchData', 'ToolServerError'].includes(cause.name)
  return isOurs ? toToolServerError(cause) : null
}
