/** Turns an error into the JSON body of a route's format. The only place that knows the three shapes. */
import type { ErrorFormat } from '../contracts/route.ts'
import type { ErrorKind, GatewayError } from './gateway-error.ts'

/** @source API spec 7.1, routes facts 20.1 for the kinds it leaves out */
const API_TYPE: Readonly<Record<ErrorKind, string>> = {
  bad_request: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: 'invalid_request_error',
  timeout: 'timeout_error',
  conflict: 'conflict_error',
  too_large: 'invalid_request_error',
  headers_too_large: 'invalid_request_error',
  rate_limited: 'rate_limit_error',
  internal: 'internal_error',
  not_implemented: 'not_implemented',
  bad_gateway: 'internal_error',
  unavailable: 'service_unavailable',
  gateway_timeout: 'internal_error',
}

/** @source API spec 7.2, routes facts 20.1 */
const ADMIN_TYPE: Readonly<Record<ErrorKind, string>> = {
  bad_request: 'bad_request',
  unauthorized: 'unauthorized',
  forbidden: 'forbidden',
  not_found: 'not_found',
  method_not_allowed: 'method_not_allowed',
  timeout: 'timeout',
  conflict: 'conflict',
  too_large: 'bad_request',
  headers_too_large: 'bad_request',
  rate_limited: 'rate_limited',
  internal: 'internal_error',
  not_implemented: 'not_implemented',
  bad_gateway: 'internal_error',
  unavailable: 'service_unavailable',
  gateway_timeout: 'internal_error',
}

/** The names that clients of the messages format know. */
const MESSAGES_TYPE: Readonly<Record<ErrorKind, string>> = {
  bad_request: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: 'invalid_request_error',
  timeout: 'timeout_error',
  conflict: 'invalid_request_error',
  too_large: 'request_too_large',
  headers_too_large: 'invalid_request_error',
  rate_limited: 'rate_limit_error',
  internal: 'api_error',
  not_implemented: 'api_error',
  bad_gateway: 'api_error',
  unavailable: 'overloaded_error',
  gateway_timeout: 'timeout_error',
}

/** The error body as an object; also the payload of an error event inside a stream. */
export function toErrorBody(error: GatewayError, format: ErrorFormat): Record<string, unknown> {
  const { message, code, param } = error
  if (format === 'messages') return { type: 'error', error: { type: MESSAGES_TYPE[error.kind], message } }
  const type = format === 'api' ? API_TYPE[error.kind] : ADMIN_TYPE[error.kind]
  return { error: param === null ? { message, type, code } : { message, type, param, code } }
}

/** The event that ends a broken stream. @source DECISIONS "A broken stream says so" */
export function toErrorEvent(error: GatewayError, format: ErrorFormat): string {
  const data = JSON.stringify(toErrorBody(error, format))
  return format === 'messages' ? `event: error\ndata: ${data}\n\n` : `data: ${data}\n\n`
}
