/** Renders an error as a response in the error format of a route. */
import type { ErrorFormat } from '../contracts/error-format.ts'
import type { RequestFacts } from '../contracts/request-facts.ts'
import type { GatewayError } from './gateway-error.ts'

/** Carries the error code in every format. */
const CODE_HEADER = 'x-weir-error-code'

export interface RenderedError {
  readonly status: number
  /** [name, value, …], without the content type. */
  readonly headers: readonly string[]
  readonly contentType: string
  readonly body: string | Buffer
}

/** @throws errors of the format, and TypeError for a status outside 400 to 599 */
export function renderError(error: GatewayError, format: ErrorFormat, request: RequestFacts): RenderedError {
  const status = format.status?.(error, request) ?? error.status
  if (!Number.isInteger(status) || status < 400 || status > 599)
    throw new TypeError(`the error format ${format.name} set the status to ${status}`)
  const own = format.headers?.(error, request) ?? []
  return {
    status,
    headers: [...error.headers, ...own, CODE_HEADER, error.code],
    contentType: format.contentType ?? 'application/json',
    body: toBytes(format.body(error, request)),
  }
}

function toBytes(body: string | Buffer | object): string | Buffer {
  return typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
}
