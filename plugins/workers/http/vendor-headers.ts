/** Credentials as cloud services want them, which differs from what inference engines take. @hot */
import type { HeaderList, RequestContext, WorkerEntry } from '#kernel'

/** Sent when the client names no version. */
const ANTHROPIC_VERSION = '2023-06-01'

/**
 * Headers of a key for the gateway's own calls to a worker.
 *
 * @param provider as in `WorkerEntry.provider`
 */
export function keyHeaders(provider: string | null, key: string): HeaderList {
  if (provider === 'anthropic') return ['x-api-key', key, 'anthropic-version', ANTHROPIC_VERSION]
  if (provider === 'gemini') return ['x-goog-api-key', key]
  return ['authorization', `Bearer ${key}`]
}

/**
 * Adds the worker's key, or else the client's own as the client sent it, and the version that the service insists on.
 *
 * @param mayPassOn tells an authorization that workers may see
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
  // Also when the allow-list names it: of two keys, nobody knows which one counts.
  remove(headers, 'x-api-key')
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

/** Unless the allow-list has let it through already. */
function passOn(headers: HeaderList, ctx: RequestContext, name: string, fallback: string | undefined): void {
  for (let at = 0; at < headers.length; at += 2) if (headers[at] === name) return
  const value = ctx.header(name) ?? fallback
  if (value !== undefined) headers.push(name, value)
}

function remove(headers: HeaderList, name: string): void {
  for (let at = headers.length - 2; at >= 0; at -= 2) if (headers[at] === name) headers.splice(at, 2)
}
