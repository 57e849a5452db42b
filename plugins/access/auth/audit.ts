/** Audit log of the control plane: one line per decision. */
import type { GatewayError, Identity, Logger, RequestContext } from '#kernel'
import { ANONYMOUS_TENANT } from '#kernel'
import { DENIALS } from './errors.ts'

/** Maximum characters of a logged value. */
const MAX_VALUE_LENGTH = 1024

/** Logs an admitted control-plane request. */
export function auditSuccess(log: Logger, ctx: RequestContext): void {
  write(log, ctx, ctx.identity, 'success')
}

/** Logs a rejected control-plane request; ignores errors that are not authentication errors. */
export function auditDenial(log: Logger, ctx: RequestContext, error: GatewayError): void {
  if (!DENIALS.has(error.code)) return
  write(log, ctx, isIdentity(error.cause) ? error.cause : ctx.identity, 'denied')
}

function write(
  log: Logger,
  ctx: RequestContext,
  identity: Identity | null,
  outcome: 'success' | 'denied',
): void {
  log.info(
    {
      audit: true,
      principal: identity?.tenant ?? null,
      key_id: identity?.keyId,
      auth_method: methodOf(identity),
      role: identity?.role ?? null,
      method: ctx.method,
      path: clean(ctx.path),
      request_id: clean(ctx.requestId),
      outcome,
    },
    'control-plane access',
  )
}

function methodOf(identity: Identity | null): string | null {
  if (identity === null || identity.tenant === ANONYMOUS_TENANT) return null
  return identity.tenant.startsWith('jwt:') ? 'jwt' : 'api_key'
}

/** Escapes control characters. */
function clean(value: string): string {
  const cut = value.length > MAX_VALUE_LENGTH ? value.slice(0, MAX_VALUE_LENGTH) : value
  return cut.replaceAll(/\p{Cc}/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function isIdentity(value: unknown): value is Identity {
  return typeof value === 'object' && value !== null && 'tenant' in value && 'role' in value
}
