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
  /**
   * The server lost the session, or speaks another revision of the protocol: the call was not executed and can be
   * retried on a new connection.
   */
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

/** The address may be that of another service. */
export const NOT_MCP = 'the response is not a message of the protocol'
/** Errors of a parser. */
const PARSE_ERRORS = new Set(['SyntaxError', 'ZodError', '$ZodError'])
/** Messages by error codes of the protocol library. */
const LIBRARY_MESSAGES: ReadonlyMap<unknown, string> = new Map([
  ['REQUEST_TIMEOUT', 'no response in time'],
  ['CONNECTION_CLOSED', SERVER_CLOSED],
  ['CLIENT_HTTP_UNEXPECTED_CONTENT', NOT_MCP],
])
/** Messages by errors of the library's authorization. */
const OAUTH_MESSAGES: ReadonlyMap<string, string> = new Map([
  ['AuthorizationServerMismatchError', 'its authorization server is not the configured one'],
  ['IssuerMismatchError', 'the metadata of its authorization server name another issuer'],
  ['InsecureTokenEndpointError', 'the token endpoint of its authorization server does not use https'],
  ['InsufficientScopeError', 'the credentials lack a scope'],
])
const MAX_MESSAGE_CHARACTERS = 1_000
/** Control characters other than line feeds. */
const CONTROLS = /[^\P{Cc}\n]+/gu
/** JSON-RPC codes of the protocol. */
export const HEADER_MISMATCH = -32_020
const MISSING_CAPABILITY = -32_021
const UNSUPPORTED_VERSION = -32_022
export const METHOD_NOT_FOUND = -32_601
export const INVALID_PARAMS = -32_602

/** Converts any error of the protocol library, of sockets and of the rules to a ToolServerError. */
export function toToolServerError(error: unknown): ToolServerError {
  if (error instanceof ToolServerError) return error
  const { name, code, message } = readError(error)
  const failed = (text: string, status = 0) =>
    new ToolServerError('http_error', status, text, { cause: error })
  if (name === 'UnreachableByRule' || name === 'ByteLimitExceeded') return failed(message)
  if (name === 'UnauthorizedError') return failed('the server rejected the credentials', 401)
  if (name === 'ProtocolError') return fromRpcError({ code, message }, error)
  if (error instanceof Error && 'status' in error)
    return fromStatus(Number(error.status), textOf(error), error)
  if (name === 'SseError' && Number(code) >= 100) return fromStatus(Number(code), message, error)
  const known = LIBRARY_MESSAGES.get(code)
  if (known !== undefined) return failed(known)
  if (PARSE_ERRORS.has(name)) return failed(NOT_MCP)
  const flow = OAUTH_MESSAGES.get(name)
  if (flow !== undefined) return failed(flow, name === 'InsufficientScopeError' ? 403 : 401)
  if (name === 'OAuthError')
    return failed(`the authorization server rejected the credentials (${oauthCode(code)})`, 401)
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

/** @param text body of the response; servers put JSON-RPC errors into bodies of any status */
function fromStatus(status: number, text: string, cause: unknown): ToolServerError {
  const error = rpcErrorIn(text)
  const isSessionLost =
    status === NOT_FOUND ||
    error?.code === UNSUPPORTED_VERSION ||
    (status === BAD_REQUEST && SESSION.test(typeof error?.message === 'string' ? error.message : text))
  if (error === null || typeof error.message !== 'string' || isSessionLost)
    return new ToolServerError('http_error', status, `the server answered ${status}`, {
      cause,
      isSessionLost,
    })
  return fromRpcError({ code: status, ...error }, cause)
}

/** Errors of a server that speaks protocol 2026-07-28 and rejected this request only. */
const REFUSED_REQUEST: ReadonlySet<unknown> = new Set([
  HEADER_MISMATCH,
  MISSING_CAPABILITY,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
])
const METHOD_NOT_ALLOWED = 405

/**
 * The error for a response to a request of protocol 2026-07-28: a server of an older revision asks for its session.
 * @param body parsed JSON
 * @returns null for statuses that say nothing about the revision
 */
export function fromRefusal(status: number, body: unknown): ToolServerError | null {
  if (status !== BAD_REQUEST && status !== NOT_FOUND && status !== METHOD_NOT_ALLOWED) return null
  const error = isObject(body) && isObject(body.error) ? body.error : null
  if (error !== null && REFUSED_REQUEST.has(error.code)) return fromRpcError(error)
  return new ToolServerError('http_error', status, `the server answered ${status}`, { isSessionLost: true })
}

/** The JSON-RPC error in the body of a response; null if there is none. */
function rpcErrorIn(text: string): Readonly<Record<string, unknown>> | null {
  const begin = text.indexOf('{')
  const body = begin < 0 ? null : tryParseJson(text.slice(begin))
  return isObject(body) && isObject(body.error) ? body.error : null
}

/** Body of the response that an error of the library is about. */
function textOf(error: Error): string {
  const { data } = error as { data?: { text?: unknown } }
  return typeof data?.text === 'string' ? data.text : error.message
}

/** @param error the member of a JSON-RPC response, unchecked */
export function fromRpcError(error: unknown, cause?: unknown): ToolServerError {
  const { code, message } = isObject(error) ? error : {}
  const text =
    typeof message === 'string'
      ? message.slice(0, MAX_MESSAGE_CHARACTERS).replace(CONTROLS, ' ')
      : 'the server reported an error without a message'
  if (code === RESPONSE_INCOMPLETE) return new ToolServerError('http_error', 0, text, { cause })
  const isSessionLost = code === UNSUPPORTED_VERSION
  return new ToolServerError('mcp_protocol_error', typeof code === 'number' ? code : 0, text, {
    cause,
    isSessionLost,
  })
}

/** Codes are words (RFC 6749 §5.2). */
function oauthCode(code: unknown): string {
  return typeof code === 'string' && /^[a-z_]{1,40}$/.test(code) ? code : 'unknown error'
}

function readError(error: unknown): { name: string; code: unknown; message: string } {
  if (!(error instanceof Error)) return { name: '', code: undefined, message: '' }
  // Errors of the protocol library have the name Error; their class is more specific.
  const name = error.name === 'Error' ? error.constructor.name : error.name
  return { name, code: (error as { code?: unknown }).code, message: error.message }
}

/** Finds an error of the gateway or of the network that a library has wrapped. */
function findCause(error: unknown): ToolServerError | null {
  const cause = error instanceof Error ? error.cause : undefined
  const isKnown =
    cause instanceof Error &&
    (['UnreachableByRule', 'ByteLimitExceeded', 'ToolServerError'].includes(cause.name) ||
      (error instanceof Error && error.name === 'SdkError'))
  return isKnown ? toToolServerError(cause) : null
}
