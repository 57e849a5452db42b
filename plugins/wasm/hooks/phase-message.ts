/** Input of the modules of one phase of a request. */
import type { IncomingResponse, RequestContext } from '#kernel'
import { ABI_VERSION, type GuestInput, PHASE_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import type { PhaseItem, PhaseResult } from '../threads/guest-task.ts'
import type { Chain } from './active-modules.ts'
import { applyEdits } from './header-edits.ts'
import { withTexts } from './prompt-texts.ts'

export interface PhaseMessage extends Omit<PhaseItem, 'modules'> {
  readonly origin: PhaseOrigin
  /** The request that questions to models count for; null without one. */
  readonly asker: RequestContext | null
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

interface PhaseContent extends Pick<PhaseMessage, 'point' | 'body'> {
  /** Null in the request phase. */
  readonly response?: IncomingResponse | null
  readonly error?: GuestInput['error']
  readonly prompt?: GuestInput['prompt']
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
    body: bodyAfter(message, body),
  }
}

function bodyAfter({ point, body }: PhaseMessage, written: Uint8Array | null): Uint8Array | null {
  if (written === null) return body
  return point === 'OnPromptText' && body !== null ? withTexts(body, written) : written
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

/** @param body null if no module of the chain needs it, or it is too large */
export function messageOf(
  ctx: RequestContext,
  { needsClientAddress, needsRequestHeaders, needsResponseHeaders }: Chain,
  { point, response = null, error, prompt, body }: PhaseContent,
): PhaseMessage {
  return {
    point,
    input: {
      abi: ABI_VERSION,
      phase: PHASE_OF_ATTACH_POINT[point],
      now_ms: Date.now(),
      request: requestFacts(ctx, needsClientAddress),
      response: response === null ? undefined : { status: response.status, is_stream: false },
      error,
      prompt,
    },
    requestHeaders: needsRequestHeaders ? [...ctx.requestHeaders] : null,
    responseHeaders: response !== null && needsResponseHeaders ? [...response.headers] : null,
    body,
    origin: ctx,
    asker: ctx,
    fetched: null,
  }
}
