/** What guests are told about a request, in every phase. */
import type { RequestContext } from '#kernel'
import { ABI_VERSION, type GuestInput, type Phase } from '../../wasm-sdk/abi.ts'

export function requestFacts(ctx: RequestContext): GuestInput['request'] {
  const { identity } = ctx
  return {
    id: ctx.requestId,
    method: ctx.method,
    path: ctx.path,
    query: ctx.query,
    route: ctx.route.path,
    // Without a role nobody has shown a key: the routes are open.
    tenant: identity === null || identity.role === null ? null : identity.tenant,
    client_ip: ctx.clientAddress,
  }
}

export function guestInput(
  ctx: RequestContext,
  phase: Phase,
  more: Pick<GuestInput, 'response' | 'error'> = {},
): GuestInput {
  return { abi: ABI_VERSION, phase, now_ms: Date.now(), request: requestFacts(ctx), ...more }
}
