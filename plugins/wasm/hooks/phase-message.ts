/** Input of the modules of one phase of a request. */
import type { RequestContext } from '#kernel'
import { ABI_VERSION, type GuestInput, type Phase } from '../../../wasm-sdk/abi.ts'
import type { Fetched, PhaseItem, PhaseResult } from '../threads/guest-task.ts'
import { applyEdits } from './header-edits.ts'

export interface PhaseMessage {
  readonly point: PhaseItem['point']
  /** Without headers. */
  readonly input: GuestInput
  /** Flat lists; null where no module needs them. */
  readonly requestHeaders: readonly string[] | null
  readonly responseHeaders: readonly string[] | null
  /** Copied for the pool; null where no module needs it. */
  readonly body: Uint8Array | null
  readonly origin: PhaseOrigin
  /** Of the module that is called again; null before any fetch. */
  readonly fetched: Fetched | null
}

/** Where the phase comes from: a request, as far as its modules need it. */
export interface PhaseOrigin {
  /** The request has ended: results are discarded. */
  readonly isDone: boolean
  /** A module was called. */
  noteModule(name: string): void
  /** Calls the listener when the client leaves. */
  onAbort?(listener: () => void): void
}

/** The message after changes of a module. */
export function advanced(
  message: PhaseMessage,
  { edits, status, body }: Pick<PhaseResult, 'edits' | 'status' | 'body'>,
): PhaseMessage {
  const headers = message.point === 'OnRequest' ? 'requestHeaders' : 'responseHeaders'
  const { input } = message
  const { response } = input
  return {
    ...message,
    [headers]: message[headers] && applyEdits(message[headers], edits),
    input:
      status === null || response === undefined ? input : { ...input, response: { ...response, status } },
    body: body ?? message.body,
  }
}

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
