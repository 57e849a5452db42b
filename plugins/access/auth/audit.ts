/** The audit trail of the control plane: one log line per decision, passed or refused. */
import type { GatewayError, Identity, Logger, RequestContext } from '#kernel'

/** Longer values are cut, so that a caller cannot fill the log. Characters. */
const MAX_VALUE_LENGTH = 1024

/** Logs that a control-plane request passed. */
export function auditSuccess(log: Logger, ctx: RequestContext): void {
  write(log, ctx, ctx.identity, 'success')
}

/** Logs that a control-plane request was refused; errors of other rooms are none of its business. */
export function auditDenial(log: Logger, ctx: RequestContext, error: GatewayError): void {
  if (error.code !== 'invalid_credential' && error.code !== 'insufficient_role') return
  write(log, ctx, isIdentity(error.cause) ? error.cause : null, 'denied')
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
  if (identity === null || identity.tenant === 'anonymous') return null
  return identity.tenant.startsWith('jwt:') ? 'jwt' : 'api_key'
}

/** Control characters are written as escapes, also where the log is read as plain text. */
function clean(value: string): string {
  const cut = value.length > MAX_VALUE_LENGTH ? value.slice(0, MAX_VALUE_LENGTH) : value
  return cut.replaceAll(/\p{Cc}/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function isIdentity(value: unknown): value is Identity {
  return typeof value === 'object' && value !== null && 'tenant' in value && 'role' in value
}
