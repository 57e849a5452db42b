/** The error class of the gateway: code, kind, source and rendering. Created only by error tables. */
import { filterHeaders, isFieldValue, isToken } from '../wire/headers.ts'

/** HTTP status of each kind of failure. */
export const STATUS_OF_KIND = Object.freeze({
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
  insufficient_storage: 507,
})

/** Kind of a failure, which determines the HTTP status. */
export type ErrorKind = keyof typeof STATUS_OF_KIND

const KIND_OF_STATUS: ReadonlyMap<number, ErrorKind> = new Map(
  Object.entries(STATUS_OF_KIND).map(([kind, status]) => [status, kind as ErrorKind]),
)

/** The kind of a status that a worker or an error format chose. */
function kindOfStatus(status: number): ErrorKind {
  return (
    KIND_OF_STATUS.get(status) ??
    (status === 529 ? 'unavailable' : status >= 500 ? 'bad_gateway' : 'bad_request')
  )
}

/** Origin of the fault: the client, a worker, or the gateway. */
export type ErrorSource = 'client' | 'worker' | 'gateway'

/** Details of one error beside the row of its table. */
export interface ErrorOptions {
  /** The invalid request field, such as `sampling_params.top_p`. */
  readonly param?: string
  readonly cause?: unknown
  /** Replaces the status of the row's kind, for example by that of a worker. */
  readonly status?: number
  /** Replaces the code of the row. A malformed code becomes `worker_error`. */
  readonly code?: string
  /** Type that the worker gave, for formats that show one. Default: that of the kind. */
  readonly type?: string
  /** Extra response headers, such as `['allow', 'GET, HEAD']`. Invalid ones are dropped. */
  readonly headers?: readonly string[]
}

/** Options with a Retry-After header in whole seconds, at least 1. */
export function retryAfter(seconds: number): ErrorOptions {
  return { headers: ['retry-after', String(Math.max(1, Math.ceil(seconds)))] }
}

/** Codes are sent as a header and may come from workers. */
const ERROR_CODE = /^[a-z0-9_.-]{1,100}$/i
const MALFORMED_CODE = 'worker_error'

function toErrorCode(code: string): string {
  return ERROR_CODE.test(code) ? code : MALFORMED_CODE
}

function isSendable(name: string, value: string): boolean {
  return isToken(name) && isFieldValue(value)
}

export interface ErrorFacts {
  readonly code: string
  readonly kind: ErrorKind
  readonly source: ErrorSource
  /** Another attempt may succeed, until the first byte is sent to the client. */
  readonly isRetryable: boolean
  readonly message: string
}

/** An error with a code, as clients receive it. Made by error tables only (`defineErrors`). */
export class GatewayError extends Error {
  readonly code: string
  readonly kind: ErrorKind
  readonly source: ErrorSource
  readonly isRetryable: boolean
  readonly param: string | null
  readonly type: string | null
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
    this.type = options.type ?? null
    this.headers = options.headers === undefined ? [] : filterHeaders(options.headers, isSendable)
  }
}

/** A GatewayError as plain data, for messages between threads. */
export interface PlainError extends ErrorFacts {
  readonly status: number
  readonly param: string | null
  readonly type: string | null
  readonly headers: readonly string[]
}

export function toPlainError(error: GatewayError): PlainError {
  const { code, kind, source, isRetryable, message, param, type, headers, status } = error
  return { code, kind, source, isRetryable, message, param, type, headers, status }
}

export function fromPlainError(plain: PlainError): GatewayError {
  const { param, type, headers, status } = plain
  return new GatewayError(plain, {
    param: param ?? undefined,
    type: type ?? undefined,
    headers,
    ...(status !== STATUS_OF_KIND[plain.kind] && { status }),
  })
}
