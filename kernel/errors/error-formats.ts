/** The kernel's error formats: of the inference API and of the admin API. */
import type { TSchema } from 'typebox'
import type { ErrorFormat } from '../contracts/error-format.ts'
import type { RequestFacts } from '../contracts/request-facts.ts'
import { Type } from '../contracts/type.ts'
import type { ErrorKind, GatewayError } from './gateway-error.ts'

/** Types of kinds whose name is not their type. */
type KindTypes = Readonly<Partial<Record<ErrorKind, string>>>

const API_TYPE: KindTypes = {
  bad_request: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: 'invalid_request_error',
  timeout: 'timeout_error',
  conflict: 'conflict_error',
  too_large: 'invalid_request_error',
  unsupported_media: 'invalid_request_error',
  headers_too_large: 'invalid_request_error',
  failed_dependency: 'external_connector_error',
  rate_limited: 'rate_limit_error',
  internal: 'internal_error',
  bad_gateway: 'internal_error',
  unavailable: 'service_unavailable',
  gateway_timeout: 'internal_error',
}

const ADMIN_TYPE: KindTypes = {
  too_large: 'bad_request',
  unsupported_media: 'bad_request',
  headers_too_large: 'bad_request',
  internal: 'internal_error',
  bad_gateway: 'internal_error',
  unavailable: 'service_unavailable',
  gateway_timeout: 'internal_error',
}

const errorFields = {
  message: Type.String(),
  type: Type.String(),
  param: Type.Optional(Type.String({ description: 'The invalid request field.' })),
  code: Type.Optional(Type.String({ description: 'Machine-readable error code.' })),
}

/** `{ error: { message, type, param?, code } }` with the types of one API; a broken stream ends with it as an event. */
function envelopeFormat(name: string, typeOf: KindTypes): ErrorFormat {
  const body = ({ message, code, param, kind, type: said }: GatewayError) => {
    const type = said ?? typeOf[kind] ?? kind
    return { error: param === null ? { message, type, code } : { message, type, param, code } }
  }
  return Object.freeze({
    name,
    schema: Type.Object({ error: Type.Object(errorFields) }) as TSchema,
    body,
    cutsFailedStreams: true,
    lastEvents: (error: GatewayError) => `data: ${JSON.stringify(body(error))}\n\n`,
  })
}

/** Errors of the inference API: `{ error: { message, type, param?, code } }` with the types of OpenAI's API. */
export const apiErrorFormat: ErrorFormat = envelopeFormat('ApiError', API_TYPE)

/** Errors of admin routes: the same shape with the types of the gateway. */
export const adminErrorFormat: ErrorFormat = envelopeFormat('AdminError', ADMIN_TYPE)

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
