/** The one error class: what went wrong, whose fault it is, and how it is shown. Made only by error tables. */
import { isFieldValue, isToken } from '../wire/header-syntax.ts'

/** What kind of failure; decides the HTTP status. */
export type ErrorKind =
  | 'bad_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'timeout'
  | 'conflict'
  | 'too_large'
  | 'unsupported_media'
  | 'headers_too_large'
  | 'failed_dependency'
  | 'rate_limited'
  | 'internal'
  | 'not_implemented'
  | 'bad_gateway'
  | 'unavailable'
  | 'gateway_timeout'

export const STATUS_OF_KIND: Readonly<Record<ErrorKind, number>> = Object.freeze({
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  timeout: 408,
  conflict: 409,
  too_large: 413,
  unsupported_media: 415,
  failed_dependency: 424,
  headers_too_large: 431,
  rate_limited: 429,
  internal: 500,
  not_implemented: 501,
  bad_gateway: 502,
  unavailable: 503,
  gateway_timeout: 504,
})

const KIND_OF_STATUS: ReadonlyMap<number, ErrorKind> = new Map(
  Object.entries(STATUS_OF_KIND).map(([kind, status]) => [status, kind as ErrorKind]),
)

/** The kind that says the most of a status that somebody else chose. */
function kindOfStatus(status: number): ErrorKind {
  return (
    KIND_OF_STATUS.get(status) ??
    (status === 529 ? 'unavailable' : status >= 500 ? 'bad_gateway' : 'bad_request')
  )
}

/** Where the fault lies: with the caller, with a worker, or here. */
export type ErrorSource = 'client' | 'worker' | 'gateway'

export interface ErrorOptions {
  /** Name of the request field at fault, such as `sampling_params.top_p`. */
  readonly param?: string
  readonly cause?: unknown
  /** A status that somebody else chose, such as a worker: it takes the place of that of the row's kind. */
  readonly status?: number
  /** A code that somebody else chose: it takes the place of the row's. One that is malformed becomes `worker_error`. */
  readonly code?: string
  /** Extra reply headers, such as `['allow', 'GET, HEAD']`. Those that no header line can hold are dropped. */
  readonly headers?: readonly string[]
}

/** Codes are sent as a header, and workers may choose them. */
const ERROR_CODE = /^[a-z0-9_.-]{1,100}$/i
const MALFORMED_CODE = 'worker_error'

function toErrorCode(code: string): string {
  return ERROR_CODE.test(code) ? code : MALFORMED_CODE
}

function sendableHeaders(headers: readonly string[]): readonly string[] {
  const kept: string[] = []
  for (let at = 0; at + 1 < headers.length; at += 2)
    if (isToken(headers[at]) && isFieldValue(headers[at + 1])) kept.push(headers[at], headers[at + 1])
  return kept
}

export interface ErrorFacts {
  readonly code: string
  readonly kind: ErrorKind
  readonly source: ErrorSource
  /** Another attempt on another worker may help, as long as the client has seen no byte. */
  readonly isRetryable: boolean
  readonly message: string
}

export class GatewayError extends Error {
  readonly code: string
  readonly kind: ErrorKind
  readonly source: ErrorSource
  readonly isRetryable: boolean
  readonly param: string | null
  readonly headers: readonly string[]
  readonly status: number

  constructor(facts: ErrorFacts, options: ErrorOptions = {}) {
    super(facts.message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'GatewayError'
    this.code = toErrorCode(options.code ?? facts.code)
    this.kind = options.status === undefined ? facts.kind : kindOfStatus(options.status)
    this.status = options.status ?? STATUS_OF_KIND[facts.kind]
    this.source = facts.source
    this.isRetryable = facts.isRetryable
    this.param = options.param ?? null
    this.headers = options.headers === undefined ? [] : sendableHeaders(options.headers)
  }
}

/** A GatewayError as plain data, to cross a thread border. */
export interface PlainError extends ErrorFacts {
  readonly status: number
  readonly param: string | null
  readonly headers: readonly string[]
}

export function toPlainError(error: GatewayError): PlainError {
  const { code, kind, source, isRetryable, message, param, headers, status } = error
  return { code, kind, source, isRetryable, message, param, headers, status }
}

export function fromPlainError(plain: PlainError): GatewayError {
  const { param, headers, status } = plain
  return new GatewayError(plain, {
    param: param ?? undefined,
    headers,
    ...(status !== STATUS_OF_KIND[plain.kind] && { status }),
  })
}
