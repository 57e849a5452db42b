/** Runs one request: hooks, handler, the one catch, and the end that happens exactly once. */
import type { Reply } from '../contracts/request.ts'
import { UpstreamFailure } from '../contracts/transport.ts'
import { toErrorBody, toErrorEvent } from '../errors/error-body.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { toUpstreamError } from '../upstream/upstream-errors.ts'
import type { HttpContext } from './context.ts'
import { httpErrors } from './http-errors.ts'
import { checkedReply } from './reply-check.ts'

/** After the access check, with the body read. */
export function runRequest(ctx: HttpContext): void {
  if (ctx.isDone || ctx.isFailing) return
  try {
    const { onRequest } = ctx.hooks
    if (onRequest !== null) {
      const early = onRequest(ctx)
      if (early instanceof Promise) {
        early.then((reply) => answerOrHandle(ctx, reply)).catch((error: unknown) => ctx.fail(error))
        return
      }
      answerOrHandle(ctx, early)
      return
    }
    handle(ctx)
  } catch (error) {
    ctx.fail(error)
  }
}

function answerOrHandle(ctx: HttpContext, early: Reply | undefined | void): void {
  if (ctx.isDone || ctx.isFailing) return
  if (early) {
    const { status, headers, body } = checkedReply(early, 'onRequest')
    ctx.bypassReplyHooks()
    ctx.send(status, null, body, headers)
  } else handle(ctx)
}

function handle(ctx: HttpContext): void {
  const pending = ctx.compiled.definition.handler(ctx)
  if (pending instanceof Promise) pending.catch((error: unknown) => ctx.fail(error))
}

/** Answers with the error in the route's format; inside an event stream, with an error event and the end. */
export function failRequest(ctx: HttpContext, cause: unknown): void {
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
function sendChanged(ctx: HttpContext, error: GatewayError, changed: GatewayError | Reply): void {
  if (changed instanceof GatewayError || !isReply(changed)) {
    sendError(ctx, toGatewayError(ctx, changed))
    return
  }
  if (ctx.isDone) return
  const { status, headers, body } = checkedReply(changed, 'onError')
  ctx.errorCode = error.code
  // What was streamed cannot be taken back: the reply comes too late.
  if (ctx.isStreaming && ctx.firstByteAtMs !== 0) sendError(ctx, error)
  else ctx.send(status, null, body, headers)
}

function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && Number.isInteger((value as Reply).status)
}

/** A hook of the reply failed, or an error that had to wait for one is due: no hook sees what follows. */
export function failHookedReply(ctx: HttpContext, cause: unknown): void {
  if (ctx.isDone) return
  ctx.bypassReplyHooks()
  // It was an error reply that the hook failed on: its own hooks have run.
  if (ctx.isFailing) sendError(ctx, toGatewayError(ctx, cause))
  else failRequest(ctx, cause)
}

/** What has no row in a table is a bug: logged whole, shown bare. A worker's failure is none. */
function toGatewayError(ctx: HttpContext, cause: unknown): GatewayError {
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

function sendError(ctx: HttpContext, error: GatewayError): void {
  if (ctx.isDone) return
  ctx.errorCode = error.code
  const format = ctx.compiled.definition.errors
  if (ctx.isStreaming && ctx.firstByteAtMs !== 0) {
    // The status is gone: an event stream says what broke, any other body is visibly cut.
    ctx.bypassReplyHooks()
    // The worker may have stopped in the middle of an event, which must not swallow this one.
    if (ctx.isEventStream) ctx.endStream(ctx.eventBorder + toErrorEvent(error, format))
    else ctx.destroy()
    return
  }
  ctx.json(error.status, toErrorBody(error, format), [...error.headers, 'x-weir-error-code', error.code])
}

/** Exactly once per request, whatever happened. */
export function finishRequest(ctx: HttpContext): void {
  const { server, compiled, hooks } = ctx
  server.requestEnded(ctx)
  const { onDone } = hooks
  if (onDone !== null) {
    const onThrow = (error: unknown) =>
      server.log.error({ err: error, request_id: ctx.requestId }, 'an onDone hook threw')
    try {
      const pending = onDone(ctx)
      if (pending instanceof Promise) pending.catch(onThrow)
    } catch (error) {
      onThrow(error)
    }
  }
  ctx.recycleBody()
  if (compiled.metrics === null && server.access === null) return
  const durationMs = performance.now() - ctx.startedAtMs
  compiled.metrics?.onDone(ctx.status, ctx.errorCode, durationMs / 1000)
  server.access?.(ctx, durationMs)
}
