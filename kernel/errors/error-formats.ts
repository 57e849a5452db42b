/** The kernel's error formats: of the inference API and of the admin API. */
import type { TSchema } from 'typebox'
import type { ErrorFormat } from '../contracts/error-format.ts'
import { Type } from '../contracts/type.ts'
import type { ErrorKind, GatewayError } from './gateway-error.ts'

const API_TYPE: Readonly<Record<ErrorKind, string>> = {
  bad_request: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: 'method_not_allowed',
  timeout: 'timeout_error',
  conflict: 'conflict_error',
  too_large: 'invalid_request_error',
  unsupported_media: 'invalid_request_error',
  headers_too_large: 'invalid_request_error',
  failed_dependency: 'external_connector_error',
  rate_limited: 'rate_limit_error',
  internal: 'internal_error',
  not_implemented: 'not_implemented',
  bad_gateway: 'internal_error',
  unavailable: 'service_unavailable',
  gateway_timeout: 'internal_error',
  insufficient_storage: 'insufficient_storage',
}

const ADMIN_TYPE: Readonly<Record<ErrorKind, string>> = {
  bad_request: 'bad_request',
  unauthorized: 'unauthorized',
  forbidden: 'forbidden',
  not_found: 'not_found',
  method_not_allowed: 'method_not_allowed',
  timeout: 'timeout',
  conflict: 'conflict',
  too_large: 'bad_request',
  unsupported_media: 'bad_request',
  headers_too_large: 'bad_request',
  failed_dependency: 'failed_dependency',
  rate_limited: 'rate_limited',
  internal: 'internal_error',
  not_implemented: 'not_implemented',
  bad_gateway: 'internal_error',
  unavailable: 'service_unavailable',
  gateway_timeout: 'internal_error',
  insufficient_storage: 'insufficient_storage',
}

const errorFields = {
  message: Type.String(),
  type: Type.String(),
  param: Type.Optional(Type.String({ description: 'The invalid request field.' })),
  code: Type.Optional(Type.String({ description: 'Machine-readable error code.' })),
}

/** `{ error: { message, type, param?, code } }` with the types of one API; a broken stream ends with it as an event. */
function envelopeFormat(name: string, typeOf: Readonly<Record<ErrorKind, string>>): ErrorFormat {
  const body = ({ message, code, param, kind }: GatewayError) => {
    const type = typeOf[kind]
    return { error: param === null ? { message, type, code } : { message, type, param, code } }
  }
  return Object.freeze({
    name,
    schema: Type.Object({ error: Type.Object(errorFields) }) as TSchema,
    body,
    lastEvents: (error: GatewayError) => `data: ${JSON.stringify(body(error))}\n\n`,
  })
}

export const apiErrorFormat: ErrorFormat = envelopeFormat('ApiError', API_TYPE)

export const adminErrorFormat: ErrorFormat = envelopeFormat('AdminError', ADMIN_TYPE)
