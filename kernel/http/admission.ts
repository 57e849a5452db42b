/** The checks between the head of a request and its body: access, origin, encoding and size. @hot */
import type { HttpResponse } from 'uWebSockets.js'
import { ANONYMOUS_TENANT, type AuthService, type Identity } from '../contracts/auth.ts'
import type { GatewayError } from '../errors/gateway-error.ts'
import { checkEndpoint } from '../upstream/key-scope.ts'
import { UNCOUNTED_BYTES } from './body-memory.ts'
import type { HttpContext } from './context.ts'
import { isForeignPage } from './cors.ts'
import { httpErrors } from './http-errors.ts'
import { runRequest } from './run-request.ts'

/** @source RFC 9110 section 15.5.16 */
const ACCEPTED_ENCODING = { headers: ['accept-encoding', 'identity'] }
const MAX_SHOWN_ENCODING = 40

/**
 * Admits or fails a request. It is admitted later if its key is checked asynchronously; it then runs from here if its body
 * is complete.
 *
 * @param isLocal the listener is reachable from this machine alone
 */
export function checkAccess(ctx: HttpContext, res: HttpResponse, isLocal: boolean): void {
  const { auth } = ctx.compiled
  try {
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
function admitLater(ctx: HttpContext, res: HttpResponse, found: Promise<Identity>, isLocal: boolean): void {
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
