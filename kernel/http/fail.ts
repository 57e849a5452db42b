/** Fails requests: the error, the `onError` hooks, and the error response in the route's format. */
import type { WholeResponse } from '../contracts/request.ts'
import { UpstreamFailure } from '../contracts/transport.ts'
import { apiErrorFormat, renderError } from '../errors/error-formats.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { toUpstreamError } from '../upstream/upstream-errors.ts'
import { isObject } from '../wire/is-object.ts'
import { httpErrors } from './http-errors.ts'
import { type CheckedResponse, checkedResponse } from './response-check.ts'
import type { ServedRequest } from './server-parts.ts'

/** Sent when every format fails: a constant, so that it cannot fail too. */
const LAST_RESORT: CheckedResponse = {
  status: 500,
  headers: ['content-type', 'application/json', 'x-weir-error-code', 'internal_error'],
  body: '{"error":{"message":"internal error","type":"internal_error","code":"internal_error"}}',
}

/** Ends the request with an error response in the route's format, or ends its stream with the error. */
export function failRequest(ctx: ServedRequest, cause: unknown): void {
  // Only the first error is reported; its hooks run once.
  if (ctx.isDone || ctx.isFailing) return
  ctx.isFailing = true
  const error = toGatewayError(ctx, cause)
  const { onError } = ctx.hooks
  if (onError === null) {
    sendError(ctx, error)
    return
  }
  try {
    const changed = onError(ctx, error)
    if (changed instanceof Promise) {
      changed
        .catch((failure: unknown) => toGatewayError(ctx, failure))
        .then((next) => sendChanged(ctx, error, next))
        .catch((failure: unknown) => sendError(ctx, toGatewayError(ctx, failure)))
    } else sendChanged(ctx, error, changed)
  } catch (failure) {
    sendError(ctx, toGatewayError(ctx, failure))
  }
}

/** @param changed what the hooks returned: another error, or a response */
function sendChanged(ctx: ServedRequest, error: GatewayError, changed: GatewayError | WholeResponse): void {
  if (changed instanceof GatewayError || !isResponse(changed)) {
    sendError(ctx, toGatewayError(ctx, changed))
    return
  }
  if (ctx.isDone) return
  const { status, headers, body } = checkedResponse(changed, 'an onError hook')
  ctx.errorCode = error.code
  // A stream that has started cannot be replaced.
  if (hasBegunStream(ctx)) sendError(ctx, error)
  else ctx.send(status, null, body, headers)
}

function isResponse(value: unknown): value is WholeResponse {
  return isObject(value) && Number.isInteger(value.status)
}

/** Fails a request whose response hook failed, or whose error was delayed by one; no further hook sees the response. */
export function failHookedResponse(ctx: ServedRequest, cause: unknown): void {
  if (ctx.isDone) return
  ctx.bypassResponseHooks()
  // The hook failed on an error response, whose `onError` hooks have run.
  if (ctx.isFailing) sendError(ctx, toGatewayError(ctx, cause))
  else failRequest(ctx, cause)
}

/** Anything but a GatewayError or a worker's failure is a bug: logged with its stack, sent as `internal_error`. */
function toGatewayError(ctx: ServedRequest, cause: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause
  if (cause instanceof UpstreamFailure) {
    ctx.server.log.warn(
      { request_id: ctx.requestId, path: ctx.path, failure: cause.kind, reason: cause.message },
      'call to a worker failed',
    )
    return toUpstreamError(cause, cause.responseStarted)
  }
  ctx.server.log.error(
    { err: cause, request_id: ctx.requestId, method: ctx.method, path: ctx.path },
    'unexpected error',
  )
  return httpErrors.internal_error.with({ cause })
}

function sendError(ctx: ServedRequest, error: GatewayError): void {
  if (ctx.isDone) return
  ctx.errorCode = error.code
  if (hasBegunStream(ctx)) {
    endStream(ctx, error)
    return
  }
  const { status, headers, body } = errorResponse(ctx, error)
  ctx.send(status, null, body, headers)
}

/** After the status was sent: ends the stream with the error in the stream's format, or truncates it if there is none. */
function endStream(ctx: ServedRequest, error: GatewayError): void {
  const { sink } = ctx
  ctx.bypassResponseHooks()
  sink.isCutAtEnd = ctx.route.errors.cutsFailedStreams === true
  const last = encodeForStream(ctx, error)
  if (last !== null) sink.end(last)
  // Ends an incomplete event first, so that the error events are not part of it.
  else if (sink.isEventStream) sink.end(sink.eventBorder + lastEvents(ctx, error))
  else sink.destroy()
}

/** @returns null if the stream has no error encoder, or it failed */
function encodeForStream(ctx: ServedRequest, error: GatewayError): string | Buffer | null {
  const { encodeError } = ctx
  if (encodeError === null) return null
  try {
    const last = encodeError(error)
    if (typeof last === 'string' || Buffer.isBuffer(last)) return last
    throw new TypeError('encodeError must return a string or a Buffer')
  } catch (failure) {
    ctx.server.log.error({ err: failure, request_id: ctx.requestId }, 'error encoder of a stream failed')
    return null
  }
}

function hasBegunStream({ sink }: ServedRequest): boolean {
  return sink.isStreaming && sink.firstByteAtMs !== 0
}

/** A failing error format is a bug of a plugin; the client still gets a response. */
function errorResponse(ctx: ServedRequest, error: GatewayError): CheckedResponse {
  for (const format of [ctx.route.errors, apiErrorFormat]) {
    try {
      return checkedResponse(renderError(error, format, ctx), `the error format ${format.name}`)
    } catch (failure) {
      logFormatFailure(ctx, format.name, failure)
    }
  }
  return LAST_RESORT
}

function lastEvents(ctx: ServedRequest, error: GatewayError): string {
  try {
    const events = ctx.route.errors.lastEvents(error, ctx)
    if (typeof events === 'string') return events
    throw new TypeError('lastEvents must return a string')
  } catch (failure) {
    logFormatFailure(ctx, ctx.route.errors.name, failure)
    return apiErrorFormat.lastEvents(error, ctx)
  }
}

function logFormatFailure(ctx: ServedRequest, format: string, failure: unknown): void {
  ctx.server.log.error({ err: failure, request_id: ctx.requestId, format }, 'error format failed')
}
