/**
 * What happens to a request between its head and its handler: access, origin, encoding and size are checked, then the
 * `onRequest` hooks and the handler run. An exception of either fails the request. @hot
 */

import type { HttpResponse } from 'uWebSockets.js'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ANONYMOUS_TENANT, type AuthService, type Identity } from '../contracts/auth.ts'
import type { WholeResponse } from '../contracts/request.ts'
import { renderError } from '../errors/error-formats.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { checkEndpoint, checkModel, checkModelChanges } from '../upstream/key-scope.ts'
import { UNCOUNTED_BYTES } from './body-memory.ts'
import type { HttpContext } from './context.ts'
import { isForeignPage } from './cors.ts'
import { httpErrors } from './http-errors.ts'
import { type CheckedResponse, checkedResponse } from './response-check.ts'

/** @source RFC 9110 section 15.5.16 */
const ACCEPTED_ENCODING = { headers: ['accept-encoding', 'identity'] }
const MAX_SHOWN_ENCODING = 40

/**
 * Admits or fails a request. It is admitted later if its key is checked asynchronously; it then runs from here if its body
 * is complete.
 *
 * @param isLocal the listener is reachable from this machine alone
 * @param isLater check in the next turn
 */
export function checkAccess(ctx: HttpContext, res: HttpResponse, isLocal: boolean, isLater: boolean): void {
  const { auth } = ctx.compiled
  try {
    if (isLater) {
      const found = nextTurn().then(() => (auth === null ? null : identify(ctx, auth)))
      admitLater(ctx, res, found, isLocal)
      return
    }
    if (auth === null) {
      admit(ctx, null, isLocal)
      return
    }
    const found = identify(ctx, auth)
    if (found instanceof Promise) admitLater(ctx, res, found, isLocal)
    else admit(ctx, found, isLocal)
  } catch (error) {
    ctx.fail(error)
  }
}

function identify(ctx: HttpContext, auth: AuthService): Identity | Promise<Identity> {
  const { access, takesApiKeyHeader } = ctx.route
  const authorization = ctx.header('authorization')
  if (access === 'admin' && authorization === undefined) {
    const found = ctx.server.sessions?.identify(ctx) ?? null
    if (found !== null) return found
  }
  ctx.credentials = {
    authorization,
    apiKey: takesApiKeyHeader === true ? ctx.header('x-api-key') : undefined,
    isGatewayKey: false,
  }
  return auth.check(access === 'admin' ? 'admin' : 'api', ctx.credentials)
}

/** Reads no further bytes of the body until the access check has finished. */
function admitLater(
  ctx: HttpContext,
  res: HttpResponse,
  found: Promise<Identity | null>,
  isLocal: boolean,
): void {
  const { contentLength } = ctx.headers
  const mayBeLarge = ctx.compiled.readsBody && (contentLength < 0 || contentLength > UNCOUNTED_BYTES)
  if (mayBeLarge) res.pause()
  const settle = () => {
    if (mayBeLarge && !ctx.isDone) res.resume()
  }
  found
    .then((identity) => {
      settle()
      admit(ctx, identity, isLocal)
      const error = ctx.moveHeldBody()
      if (error !== null) ctx.fail(error)
      else if (ctx.isAdmitted && (ctx.compiled.readsBody ? ctx.hasBody : !ctx.isReceiving)) runRequest(ctx)
    })
    .catch((error: unknown) => {
      settle()
      ctx.fail(error)
    })
}

function admit(ctx: HttpContext, identity: Identity | null, isLocal: boolean): void {
  ctx.identity = identity
  if (
    ctx.route.access === 'admin' &&
    (identity === null || identity.role === null) &&
    isForeign(ctx, isLocal)
  ) {
    ctx.fail(httpErrors.foreign_page())
    return
  }
  checkEndpoint(identity, ctx.route.endpoint)
  ctx.isAdmitted = true
}

function isForeign(ctx: HttpContext, isLocal: boolean): boolean {
  // A page of another site cannot send a valid key: browsers add none, and sessions check the origin.
  if (ctx.identity !== null && ctx.identity.tenant !== ANONYMOUS_TENANT) return false
  const isNamed = (origin: string) => ctx.server.cors.names(origin)
  return isForeignPage(ctx.header('origin'), ctx.header('host'), isNamed, isLocal)
}

/** Why the body is not read; null if it is. */
export function bodyError(ctx: HttpContext, maxBodyBytes: number): GatewayError | null {
  const { contentLength } = ctx.headers
  if (contentLength > maxBodyBytes) return httpErrors.payload_too_large(maxBodyBytes)
  if (!ctx.compiled.readsBody) return null
  const encoding = encodingOf(ctx)
  if (encoding !== '')
    return httpErrors.unsupported_content_encoding.with(
      ACCEPTED_ENCODING,
      encoding.slice(0, MAX_SHOWN_ENCODING),
    )
  return contentLength > UNCOUNTED_BYTES ? ctx.holdBody(contentLength) : null
}

/** Empty for a body that is not encoded. A compressed one cannot be inspected and has no size limit. */
function encodingOf(ctx: HttpContext): string {
  const encoding = ctx.header('content-encoding') ?? ''
  return encoding.toLowerCase() === 'identity' ? '' : encoding
}

/** After the access check, with the body read. */
export function runRequest(ctx: HttpContext): void {
  if (ctx.isDone || ctx.isFailing) return
  try {
    if (ctx.identity !== null && ctx.identity.models !== undefined) checkBody(ctx)
    const { onRequest } = ctx.hooks
    if (onRequest !== null) {
      const early = onRequest(ctx)
      if (early instanceof Promise) {
        early.then((response) => respondOrHandle(ctx, response)).catch((error: unknown) => ctx.fail(error))
        return
      }
      respondOrHandle(ctx, early)
      return
    }
    handle(ctx)
  } catch (error) {
    ctx.fail(error)
  }
}

function respondOrHandle(ctx: HttpContext, early: WholeResponse | undefined | void): void {
  if (ctx.isDone || ctx.isFailing) return
  if (early) {
    const response = checkedResponse(early, 'an onRequest hook')
    const isFilled = response.status >= 400 && ctx.route.errors.fillsRefusals === true
    const { status, headers, body } = isFilled ? inFormat(ctx, response) : response
    ctx.bypassResponseHooks()
    ctx.send(status, null, body, headers)
  } else handle(ctx)
}

function handle(ctx: HttpContext): void {
  if (ctx.query !== '') ctx.compiled.checkQuery?.(ctx.query)
  const pending = ctx.compiled.definition.handler(ctx)
  if (pending instanceof Promise) pending.catch((error: unknown) => ctx.fail(error))
}

/**
 * Before the hooks, which may replace the name that the client sent by what it stands for. Requests without a model in their
 * body are checked by their calls.
 */
function checkBody(ctx: HttpContext): void {
  if (ctx.route.access !== 'api' || ctx.rawBody.length === 0) return
  const { model } = ctx.peek()
  checkModelChanges(ctx.identity, ctx.rawBody)
  if (model === null) return
  checkModel(ctx.identity, model)
  ctx.isModelAllowed = true
}

/**
 * Completes the refusal of a hook on a route whose clients read only one error format: missing headers and a missing body
 * are taken from the format.
 */
function inFormat(ctx: HttpContext, response: CheckedResponse): CheckedResponse {
  const { status, body } = response
  const error = new GatewayError(
    {
      code: 'refused',
      kind: 'forbidden',
      source: 'gateway',
      isRetryable: false,
      message: `the request was refused with status ${status}`,
    },
    { status },
  )
  const format = ctx.route.errors
  const headers = [...response.headers]
  const add = (name: string, value: string) => {
    for (let at = 0; at < headers.length; at += 2) if (headers[at].toLowerCase() === name) return
    headers.push(name, value)
  }
  const own = format.headers?.(error, ctx) ?? []
  for (let at = 0; at < own.length; at += 2) add(own[at], own[at + 1])
  if (body.length > 0) return { status, headers, body }
  const filled = renderError(error, format, ctx)
  add('content-type', filled.contentType)
  return { status, headers, body: filled.body }
}
