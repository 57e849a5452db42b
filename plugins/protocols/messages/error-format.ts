/** Errors as clients of the messages format know them: the vendor's envelope, with the request's id. */
import {
  type ErrorFormat,
  type ErrorKind,
  type GatewayError,
  type RequestFacts,
  type TSchema,
  Type,
} from '#kernel'
import { overflowMessage } from './serve/context-overflow.ts'

/** @source Anthropic API reference, Messages */
const TYPE_OF_KIND: Readonly<Record<ErrorKind, string>> = {
  bad_request: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: 'invalid_request_error',
  timeout: 'timeout_error',
  conflict: 'conflict_error',
  too_large: 'request_too_large',
  unsupported_media: 'invalid_request_error',
  headers_too_large: 'invalid_request_error',
  failed_dependency: 'api_error',
  rate_limited: 'rate_limit_error',
  internal: 'api_error',
  not_implemented: 'api_error',
  bad_gateway: 'api_error',
  unavailable: 'overloaded_error',
  gateway_timeout: 'timeout_error',
}
const BAD_REQUEST = 400
const PAYMENT_REQUIRED = 402
const BAD_GATEWAY = 502

export const messagesErrorFormat: ErrorFormat = Object.freeze({
  name: 'MessagesError',
  schema: Type.Object({
    type: Type.Literal('error'),
    error: Type.Object({ type: Type.String(), message: Type.String() }),
    request_id: Type.String(),
  }) as TSchema,
  body: toEnvelope,
  lastEvents: (error: GatewayError, request: RequestFacts) =>
    `event: error\ndata: ${JSON.stringify(toEnvelope(error, request))}\n\n`,
  status: statusOf,
  fillsRefusals: true,
  headers: ({ kind, source }: GatewayError, { requestId }: RequestFacts) =>
    // Agents try a refused key for many seconds unless they are told that it is no use.
    kind === 'unauthorized' && source !== 'worker'
      ? ['request-id', requestId, 'x-should-retry', 'false']
      : ['request-id', requestId],
})

/** The format has no status for a tool server that cannot be reached. */
function statusOf(error: GatewayError): number {
  if (error.kind === 'failed_dependency') return BAD_GATEWAY
  return overflowMessage(error) === null ? error.status : BAD_REQUEST
}

function toEnvelope(error: GatewayError, { requestId }: RequestFacts): object {
  const overflow = overflowMessage(error)
  return {
    type: 'error',
    error:
      overflow === null
        ? { type: typeOf(error), message: error.message }
        : { type: 'invalid_request_error', message: overflow },
    request_id: requestId,
  }
}

function typeOf({ kind, status }: GatewayError): string {
  return status === PAYMENT_REQUIRED ? 'billing_error' : TYPE_OF_KIND[kind]
}
