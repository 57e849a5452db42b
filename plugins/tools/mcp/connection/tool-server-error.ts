/** Errors of tool servers; their messages contain no address, credential or stack trace. */
import { isObject } from '#kernel'
import { tryParseJson } from '#shared'
import { RESPONSE_INCOMPLETE, SERVER_CLOSED } from '../net/response-stream.ts'

/** Error types of the public API. */
export type ToolErrorType = 'http_error' | 'mcp_protocol_error' | 'mcp_tool_execution_error'

export class ToolServerError extends Error {
  readonly type: ToolErrorType
  /** HTTP status or JSON-RPC code; 0 when there is neither. */
  readonly code: number
  /** The server lost the session: the call was not executed and can be retried on a new connection. */
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

  /** Whether the connection closed during the request. */
  get isClosed(): boolean {
    return this.message === SERVER_CLOSED
  }
}

/** Messages of the protocol library; servers use the same codes for other errors. */
const LIBRARY_MESSAGES: ReadonlyMap<string, string> = new Map([
  ['Request timed out', 'no response in time'],
  ['Maximum total timeout exceeded', 'no response in time'],
  ['Connection closed', SERVER_CLOSED],
])
const MAX_MESSAGE_CHARACTERS = 1_000

/** Converts any error of the protocol library, of sockets and of the rules to a ToolServerError. */
export function toToolServerError(error: unknown): ToolServerError {
  if (error instanceof ToolServerError) return error
  const { name, code, message } = readError(error)
  const failed = (text: string, status = 0) =>
    new ToolServerError('http_error', status, text, { cause: error })
  if (name === 'UnreachableByRule' || name === 'ByteLimitExceeded') return failed(message)
  if (name === 'UnauthorizedError') return failed('the server rejected the credentials', 401)
  if (name === 'McpError') return fromProtocol(Number(code), message, error)
  if (/^Error POSTing|^Streamable HTTP error|^SSE error/.test(message) && Number(code) >= 100)
    return fromStatus(Number(code), message, error)
  if (/^OAuth client information is bound/.test(message))
    return failed('its authorization server is not the configured one', 401)
  if (error instanceof Error && 'errorCode' in error)
    return failed('the authorization server rejected the credentials', 401)
  const inner = findCause(error)
  if (inner !== null) return inner
  if (typeof code === 'string') return failed(`cannot reach the server (${code})`)
  if (message === SERVER_CLOSED || /^(no connection|no complete response) within \d+ ms$/.test(message))
    return failed(message)
  return failed('cannot reach the server')
}

const NOT_FOUND = 404
const BAD_REQUEST = 400
/** Some servers reject an unknown session with 400 instead of 404. */
const SESSION = /\bsession\b/i

/** @param message of the library, which ends with the body; servers put JSON-RPC errors into bodies of any status */
function fromStatus(status: number, message: string, cause: unknown): ToolServerError {
  const error = rpcErrorIn(message)
  const isSessionLost =
    status === NOT_FOUND ||
    (status === BAD_REQUEST && SESSION.test(typeof error?.message === 'string' ? error.message : message))
  if (error === null || typeof error.message !== 'string' || isSessionLost)
    return new ToolServerError('http_error', status, `the server answered ${status}`, {
      cause,
      isSessionLost,
    })
  const code = typeof error.code === 'number' ? error.code : status
  return new ToolServerError('mcp_protocol_error', code, error.message.slice(0, MAX_MESSAGE_CHARACTERS), {
    cause,
  })
}

/** The JSON-RPC error in the body of a response; null if there is none. */
function rpcErrorIn(message: string): Readonly<Record<string, unknown>> | null {
  const begin = message.indexOf('{')
  const body = begin < 0 ? null : tryParseJson(message.slice(begin))
  return isObject(body) && isObject(body.error) ? body.error : null
}

function fromProtocol(code: number, message: string, cause: unknown): ToolServerError {
  const text = message.replace(/^MCP error -?\d+: /, '').slice(0, MAX_MESSAGE_CHARACTERS)
  if (code === RESPONSE_INCOMPLETE) return new ToolServerError('http_error', 0, text, { cause })
  const known = LIBRARY_MESSAGES.get(text)
  if (known !== undefined) return new ToolServerError('http_error', 0, known, { cause })
  return new ToolServerError('mcp_protocol_error', code, text, { cause })
}

function readError(error: unknown): { name: string; code: unknown; message: string } {
  if (!(error instanceof Error)) return { name: '', code: undefined, message: '' }
  // Errors of the protocol library have the name Error; their class is more specific.
  const name = error.name === 'Error' ? error.constructor.name : error.name
  return { name, code: (error as { code?: unknown }).code, message: error.message }
}

/** Finds an error of the gateway that a library has wrapped. */
function findCause(error: unknown): ToolServerError | null {
  const cause = error instanceof Error ? error.cause : undefined
  const isKnown =
    cause instanceof Error &&
    ['UnreachableByRule', 'ByteLimitExceeded', 'ToolServerError'].includes(cause.name)
  return isKnown ? toToolServerError(cause) : null
}
