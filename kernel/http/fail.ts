/** What becomes of a request that fails: its error, what `onError` hooks make of it, and the reply in the route's format. */
import type { RouteHooks } from '../contracts/hook.ts'
import type { Reply, RequestContext } from '../contracts/request.ts'
import { UpstreamFailure } from '../contracts/transport.ts'
import { apiErrorFormat } from '../errors/error-formats.ts'
import { toErrorReply } from '../errors/error-reply.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { toUpstreamError } from '../upstream/upstream-errors.ts'
import { httpErrors } from './http-errors.ts'
import { type CheckedReply, checkedReply } from './reply-check.ts'
import type { ServerParts } from './server-parts.ts'

/** Sent when no format can show an error: nothing of it is computed, so it cannot fail. */
const LAST_RESORT: CheckedReply = {
  status: 500,
  headers: ['content-type', 'application/json', 'x-weir-error-code', 'internal_error'],
  body: '{"error":{"message":"internal error","type":"internal_error","code":"internal_error"}}',
}

/** A request as its failure needs it. Implemented by `context.ts`. */
export interface FailingRequest extends RequestContext {
  readonly server: ServerParts
  readonly hooks: RouteHooks
  errorCode: string | null
  /** An error reply is being made. */
  isFailing: boolean
  readonly isStreaming: boolean
  readonly isEventStream: boolean
  /** What ends the event under way; empty between two events. */
  readonly eventBorder: string
  endStream(last: string): void
  bypassReplyHooks(): void
}

/** Answers with the error in the route's format; inside an event stream, with an error event and the end. */
export function failRequest(ctx: FailingRequest, cause: unknown): void {
  // The first error is the one that is told; its hooks run once.
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

/** What the hooks made of an error: another error, or a reply of their own. */
function sendChanged(ctx: FailingRequest, error: GatewayError, changed: GatewayError | Reply): void {
  if (changed instanceof GatewayError || !isReply(changed)) {
    sendError(ctx, toGatewayError(ctx, changed))
    return
  }
  if (ctx.isDone) return
  const { status, headers, body } = checkedReply(changed, 'an onError hook')
  ctx.errorCode = error.code
  // What was streamed cannot be taken back: the reply comes too late.
  if (ctx.isStreaming && ctx.firstByteAtMs !== 0) sendError(ctx, error)
  else ctx.send(status, null, body, headers)
}

function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && Number.isInteger((value as Reply).status)
}

/** A hook of the reply failed, or an error that had to wait for one is due: no hook sees what follows. */
export function failHookedReply(ctx: FailingRequest, cause: unknown): void {
  if (ctx.isDone) return
  ctx.bypassReplyHooks()
  // It was an error reply that the hook failed on: its own hooks have run.
  if (ctx.isFailing) sendError(ctx, toGatewayError(ctx, cause))
  else failRequest(ctx, cause)
}

/** What has no row in a table is a bug: logged whole, shown bare. A worker's failure is none. */
function toGatewayError(ctx: FailingRequest, cause: unknown): GatewayError {
  if (cause instanceof GatewayError) return cause
  if (cause instanceof UpstreamFailure) {
    ctx.server.log.warn(
      { request_id: ctx.requestId, path: ctx.path, failure: cause.kind, reason: cause.message },
      'a call to a worker failed',
    )
    return toUpstreamError(cause, cause.responseStarted)
  }
  ctx.server.log.error(
    { err: cause, request_id: ctx.requestId, method: ctx.method, path: ctx.path },
    'unexpected error while serving a request',
  )
  return httpErrors.internal_error.with({ cause })
}

function sendError(ctx: FailingRequest, error: GatewayError): void {
  if (ctx.isDone) return
  ctx.errorCode = error.code
  if (ctx.isStreaming && ctx.firstByteAtMs !== 0) {
    // The status is gone: an event stream says what broke, any other body is visibly cut.
    ctx.bypassReplyHooks()
    // The worker may have stopped in the middle of an event, which must not swallow these.
    if (ctx.isEventStream) ctx.endStream(ctx.eventBorder + lastEvents(ctx, error))
    else ctx.destroy()
    return
  }
  const { status, headers, body } = errorReply(ctx, error)
  ctx.send(status, null, body, headers)
}

/** A format that fails is a plugin's fault, and no reason to leave a client without an answer. */
function errorReply(ctx: FailingRequest, error: GatewayError): CheckedReply {
  for (const format of [ctx.route.errors, apiErrorFormat]) {
    try {
      return checkedReply(toErrorReply(error, format, ctx), `the error format ${format.name}`)
    } catch (failure) {
      logFormatFailure(ctx, format.name, failure)
    }
  }
  return LAST_RESORT
}

function lastEvents(ctx: FailingRequest, error: GatewayError): string {
  try {
    const events = ctx.route.errors.lastEvents(error, ctx)
    if (typeof events === 'string') return events
    throw new TypeError('lastEvents gave no text')
  } catch (failure) {
    logFormatFailure(ctx, ctx.route.errors.name, failure)
    return apiErrorFormat.lastEvents(error, ctx)
  }
}

function logFormatFailure(ctx: FailingRequest, format: string, failure: unknown): void {
  ctx.server.log.error({ err: failure, request_id: ctx.requestId, format }, 'an error format failed')
}
