/** Member `request` of guest inputs. */
import type { RequestContext } from '#kernel'
import { ABI_VERSION, type GuestInput, type Phase } from '../../../wasm-sdk/abi.ts'

/** Tenant of callers without a key. */
const ANONYMOUS = 'anonymous'

/** Null for callers without a key. */
export function tenantOf({ identity }: RequestContext): string | null {
  return identity === null ? null : callerTenant(identity.tenant)
}

/** Null for callers without a key. */
export function callerTenant(tenant: string): string | null {
  return tenant === ANONYMOUS ? null : tenant
}

/** @param showsAddress false omits the client address */
export function requestFacts(ctx: RequestContext, showsAddress: boolean): GuestInput['request'] {
  return {
    id: ctx.requestId,
    method: ctx.method,
    path: ctx.path,
    query: ctx.query,
    route: ctx.route.path,
    tenant: tenantOf(ctx),
    client_ip: showsAddress ? ctx.clientAddress : '',
  }
}

export function guestInput(
  ctx: RequestContext,
  phase: Phase,
  showsAddress: boolean,
  more: Pick<GuestInput, 'response' | 'error'> = {},
): GuestInput {
  return { abi: ABI_VERSION, phase, now_ms: Date.now(), request: requestFacts(ctx, showsAddress), ...more }
}
