/**
 * The OnResponse and OnError attach points: modules may change responses before the first byte. OnError is called once per
 * error and before OnResponse.
 */
import {
  type GatewayError,
  headerOf,
  type IncomingResponse,
  type RequestContext,
  renderError,
  type WholeResponse,
} from '#kernel'
import type { GuestInput } from '../../../wasm-sdk/abi.ts'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import type { LoadedModule } from '../threads/guest-task.ts'
import { type ActiveModules, selectModules } from './active-modules.ts'
import { applyEdits } from './header-edits.ts'
import type { PhaseChain, PhaseEnd } from './phase-chain.ts'
import { messageOf } from './phase-message.ts'

/** Types of streamed bodies; only the first has events. */
const STREAM_TYPES: ReadonlySet<string> = new Set([
  'text/event-stream',
  'application/x-ndjson',
  'application/ndjson',
  'application/jsonl',
  'application/x-jsonlines',
  'application/json-seq',
  'application/stream+json',
])
/** Statuses of the access check. */
const REFUSED_STATUSES = [401, 403]
/** Responses from this status on are errors. */
const LEAST_ERROR_STATUS = 500

export interface ResponseParts {
  readonly phases: PhaseChain
  readonly active: ActiveModules
  readonly statistics: CallStatistics
  /** Longer bodies are not passed to guests. */
  readonly maxBodyBytes: number
}

/** Media types are compared without case and parameters (RFC 9110 §8.3.1). */
export function isStream({ headers }: IncomingResponse): boolean {
  const type = headerOf(headers, 'content-type')
  return type !== undefined && STREAM_TYPES.has(type.split(';', 1)[0].trim().toLowerCase())
}

/** Returns true for the gateway's own response to a failed access check. */
function isRefusal(ctx: RequestContext, { status, headers }: IncomingResponse): boolean {
  return (
    ctx.identity === null &&
    REFUSED_STATUSES.includes(status) &&
    headerOf(headers, 'x-weir-error-code') !== undefined
  )
}

/**
 * @param response not a stream
 * @param errorSeen OnError was called for this request
 */
export function runOnResponse(
  parts: ResponseParts,
  ctx: RequestContext,
  response: IncomingResponse,
  errorSeen: boolean,
): Promise<void> | undefined {
  const isError = response.status >= LEAST_ERROR_STATUS && !errorSeen
  const callsError = isError && parts.active.chain('OnError').modules.length > 0
  if (!callsError && parts.active.chain('OnResponse').modules.length === 0) return undefined
  return passThrough(parts, ctx, response, callsError)
}

async function passThrough(
  parts: ResponseParts,
  ctx: RequestContext,
  response: IncomingResponse,
  callsError: boolean,
): Promise<void> {
  if (callsError) {
    const { status } = response
    const message = `the worker returned ${status}`
    const error = { code: 'upstream_error', message, type: 'upstream_error', status }
    await onePhase(parts, ctx, response, { point: 'OnError', isRefused: false, error })
  }
  await onePhase(parts, ctx, response, { point: 'OnResponse', isRefused: isRefusal(ctx, response) })
}

interface ResponsePhase {
  readonly point: 'OnError' | 'OnResponse'
  /** The access check rejected the request. */
  readonly isRefused: boolean
  readonly error?: GuestInput['error']
}

/** @returns null if no module was called */
async function onePhase(
  { phases, active, statistics, maxBodyBytes }: ResponseParts,
  ctx: RequestContext,
  response: IncomingResponse,
  { point, isRefused, error }: ResponsePhase,
): Promise<PhaseEnd | null> {
  const { body } = response
  const shown = body !== null && body.length <= maxBodyBytes ? body : null
  const chain = active.chain(point)
  const selected = selectModules(chain, ctx, isRefused)
  const modules = shown === null ? withoutBodyReaders(selected, statistics) : selected
  if (modules.length === 0) return null
  const content = { point, response, error, body: chain.needsResponseBody ? shown : null }
  const end = await phases.run(modules, messageOf(ctx, chain, content))
  applyEnd(response, end)
  return end
}

/** Skips modules that need a body that is too large. */
function withoutBodyReaders(
  modules: readonly LoadedModule[],
  statistics: CallStatistics,
): readonly LoadedModule[] {
  return modules.filter((module) => {
    if (!module.needs.response_body) return true
    statistics.skip(module, 'reply_too_large')
    return false
  })
}

/** A rejection replaces status and headers, and the body unless its own is empty. */
function applyEnd(response: IncomingResponse, { edits, status, body, rejection }: PhaseEnd): void {
  response.headers = applyEdits(response.headers, edits)
  if (status !== null) response.status = status
  let replacement = body
  if (rejection !== null) {
    response.status = rejection.status
    response.headers = applyEdits(response.headers, rejection.edits)
    if (rejection.body.length > 0) replacement = rejection.body
  }
  if (replacement === null) return
  response.body = Buffer.from(replacement)
  const isEncodingSet = [...edits, ...(rejection?.edits ?? [])].includes('content-encoding')
  // The encoding of the replaced body.
  if (!isEncodingSet) response.headers = applyEdits(response.headers, ['remove', 'content-encoding', ''])
}

/** Handles an error of the gateway before its response is built. @returns the error, or the response instead */
export async function runOnError(
  parts: ResponseParts,
  ctx: RequestContext,
  error: GatewayError,
): Promise<GatewayError | WholeResponse> {
  const { code, message, kind } = error
  const reply = renderError(error, ctx.route.errors, ctx)
  const { status } = reply
  const body = Buffer.from(reply.body as Buffer)
  const headers = ['content-type', reply.contentType, ...reply.headers]
  const response: IncomingResponse = { status, headers, body }
  const end = await onePhase(parts, ctx, response, {
    point: 'OnError',
    isRefused: ctx.identity === null && isAuthFailure(error),
    error: { code, message, type: kind, status },
  })
  if (end === null) return error
  if (end.edits.length === 0 && end.status === null && end.body === null && end.rejection === null)
    return error
  return {
    status: isAuthFailure(error) && response.status < 400 ? status : response.status,
    headers: response.headers,
    body: response.body ?? body,
  }
}

/** A module must not turn a failed access check into a success. */
function isAuthFailure({ kind }: GatewayError): boolean {
  return kind === 'unauthorized' || kind === 'forbidden'
}
