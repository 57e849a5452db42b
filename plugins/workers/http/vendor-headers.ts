/** Credential headers of cloud services, which differ from those of inference engines. @hot */
import { type HeaderList, headerOf, type RequestContext, removeHeader, type WorkerEntry } from '#kernel'

/** Sent if the client names no version. */
const ANTHROPIC_VERSION = '2023-06-01'

/**
 * Key headers of the gateway's own calls to a worker.
 *
 * @param provider as in `WorkerEntry.provider`
 */
export function keyHeaders(provider: string | null, key: string): HeaderList {
  if (provider === 'anthropic') return ['x-api-key', key, 'anthropic-version', ANTHROPIC_VERSION]
  if (provider === 'gemini') return ['x-goog-api-key', key]
  return ['authorization', `Bearer ${key}`]
}

/**
 * Adds the worker's key, or else the client's own key, and the API version that the service requires.
 *
 * @param mayPassOn whether an authorization may be forwarded to workers
 * @returns false for services that take a bearer token
 */
export function addVendorHeaders(
  headers: HeaderList,
  ctx: RequestContext,
  worker: WorkerEntry,
  mayPassOn: (authorization: string) => boolean,
): boolean {
  if (worker.provider !== 'anthropic') return false
  passOn(headers, ctx, 'anthropic-version', ANTHROPIC_VERSION)
  passOn(headers, ctx, 'anthropic-beta', undefined)
  // Also if it was forwarded already, so that there is only one key.
  removeHeader(headers, 'x-api-key')
  if (worker.apiKey !== null) {
    headers.push('x-api-key', worker.apiKey)
    return true
  }
  const apiKey = ctx.header('x-api-key')
  if (apiKey !== undefined && mayPassOn(`Bearer ${apiKey}`)) headers.push('x-api-key', apiKey)
  const authorization = ctx.header('authorization')
  if (authorization !== undefined && mayPassOn(authorization)) headers.push('authorization', authorization)
  return true
}

/** Adds a header unless it was forwarded already. */
function passOn(headers: HeaderList, ctx: RequestContext, name: string, fallback: string | undefined): void {
  if (headerOf(headers, name) !== undefined) return
  const value = ctx.header(name) ?? fallback
  if (value !== undefined) headers.push(name, value)
}
