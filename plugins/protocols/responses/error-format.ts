/** How the routes of responses show what went wrong, also inside a stream and inside a response. @source OpenAI API reference, Responses */
import {
  type ErrorFormat,
  type GatewayError,
  isContextOverflow,
  type RequestFacts,
  type RouteDefinition,
  type TSchema,
  Type,
} from '#kernel'
import { DONE, eventFrame } from './serve/output/event-encoder.ts'

interface ClientError {
  readonly status: number
  readonly type: string
  readonly code: string
  readonly message: string
  readonly param: string | null
}

/** Of statuses with a type of their own. */
const TYPE_OF_STATUS = new Map([
  [401, 'authentication_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [408, 'timeout_error'],
  [409, 'conflict_error'],
  [424, 'external_connector_error'],
  [429, 'rate_limit_error'],
  [501, 'not_implemented'],
  [503, 'service_unavailable'],
  [507, 'insufficient_storage'],
])

/** Errors of the gateway's credentials at a worker are never shown as errors of the client's. */
function toClientError(error: GatewayError): ClientError {
  const { message } = error
  // Engine adapters name members as the chat format does.
  const param = error.param === 'messages' ? 'input' : error.param
  const status = statusOf(error)
  const code = codeOf(error, status)
  const common = status < 500 ? 'invalid_request_error' : 'internal_error'
  const type = code === 'cancellation_not_supported' ? 'Bad Request' : (TYPE_OF_STATUS.get(status) ?? common)
  return { status, type, code, message, param }
}

function statusOf({ source, status }: GatewayError): number {
  if (source === 'worker' && (status === 401 || status === 403)) return 500
  return status === 502 || status === 504 || status === 529 ? 500 : status
}

function codeOf({ source, code, message, status: said }: GatewayError, status: number): string {
  if (source !== 'worker') return code
  if (said === 401 || said === 403) return 'upstream_auth_error'
  if (code !== 'worker_refused') return code
  if (status === 429) return 'rate_limit_exceeded'
  if (status >= 500) return 'upstream_error'
  return isContextOverflow({ code, text: message }) ? 'context_length_exceeded' : 'upstream_invalid_request'
}

/** As the `error` member of a response. */
export function toResponseError(error: GatewayError): { code: string; message: string; type: string } {
  const { status, type, code, message } = toClientError(error)
  if (status === 429) return { code: 'rate_limit_exceeded', message, type }
  return { code: status >= 500 ? 'server_error' : code, message, type }
}

/** Members of an `error` event behind its number: flat for some clients, nested for others. */
export function errorEventMembers(error: GatewayError): string {
  const { type, code, message, param } = toClientError(error)
  const flat = { code, message, param }
  return JSON.stringify({ ...flat, error: { type, ...flat } }).slice(1, -1)
}

const errorSchema = Type.Object({
  error: Type.Object({
    message: Type.String(),
    type: Type.String(),
    param: Type.Optional(Type.String({ description: 'The request field at fault.' })),
    code: Type.Optional(Type.String({ description: 'What is wrong, for programs.' })),
  }),
}) as TSchema

function toBody(error: GatewayError): object {
  const { type, code, message, param } = toClientError(error)
  return { error: param === null ? { message, type, code } : { message, type, param, code } }
}

/** @param lastFrames the frames that end the stream of a request that failed outside of its response; undefined without a response */
export function responsesErrorFormat(
  lastFrames: (request: RequestFacts, error: GatewayError) => string | undefined,
): ErrorFormat {
  return {
    name: 'ResponsesError',
    schema: errorSchema,
    status: statusOf,
    body: toBody,
    lastEvents: (error, request) => (lastFrames(request, error) ?? loneError(error)) + DONE,
  }
}

/** Of a stream that was opened before its response had begun. */
function loneError(error: GatewayError): string {
  return eventFrame('error', 0, errorEventMembers(error))
}

/** For WebSockets: errors are messages with a status. @source OpenAI API reference, Responses */
export function socketErrorFormat(
  lastFrames: (request: RequestFacts, error: GatewayError) => string | undefined,
): ErrorFormat {
  const body = (error: GatewayError) => {
    const { status, type, code, message, param } = toClientError(error)
    return { type: 'error', status, error: { type, code, message, param } }
  }
  return {
    name: 'ResponsesSocketError',
    schema: Type.Object({ type: Type.Literal('error'), status: Type.Integer() }) as TSchema,
    status: statusOf,
    body,
    lastEvents: (error, request) => lastFrames(request, error) ?? `data: ${JSON.stringify(body(error))}\n\n`,
  }
}

/** Failures in the description of every route. */
export const failures: RouteDefinition['docs']['responses'] = {
  400: { description: 'A field is missing or wrong, or names something that is not there.' },
  404: { description: 'No worker serves the model, or there is no such response or conversation.' },
  429: { description: 'Too many requests.' },
  500: { description: 'The worker or a tool failed, or the store refused the response.' },
  503: {
    description: 'No worker that serves the model is ready, or the store is unavailable; may be retried.',
  },
  507: { description: 'The tenant has stored as many bytes as it may.' },
}
