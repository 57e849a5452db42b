/** Opens a connection to a tool server: finds out transport and revision where neither is configured nor known. */
import { openHttp } from './open-http.ts'
import { openProgram } from './open-program.ts'
import type { OpenClient, OpenParts } from './protocol-client.ts'
import { LEGACY } from './server-facts.ts'
import type { ServerTarget } from './server-target.ts'
import { ToolServerError, toToolServerError } from './tool-server-error.ts'

/** @throws errors that `toToolServerError` converts */
export async function openClient(target: ServerTarget, parts: OpenParts): Promise<OpenClient> {
  if (target.handshake === 'initialize') return openTransport(target, { ...parts, prior: LEGACY })
  if (target.handshake === 'discover') return openTransport(target, parts)
  if (parts.prior === undefined) return negotiate(target, parts)
  try {
    return await openTransport(target, parts)
  } catch (error) {
    // The server responded, but may have been replaced by one of another revision.
    if (toToolServerError(error).code === 0) throw error
    return negotiate(target, { ...parts, prior: undefined })
  }
}

async function negotiate(target: ServerTarget, parts: OpenParts): Promise<OpenClient> {
  const startedMs = performance.now()
  try {
    return await openTransport(target, parts)
  } catch (error) {
    const { connectMs } = parts.limits
    // A program may need all of the time to start.
    const leftMs = target.kind === 'stdio' ? connectMs : connectMs - (performance.now() - startedMs)
    if (leftMs <= 0 || !isUnclear(target, error)) throw error
    const limits = { ...parts.limits, connectMs: Math.ceil(leftMs) }
    return openTransport(target, { ...parts, limits, prior: LEGACY })
  }
}

/** Results of a first request that older servers may give instead of an error of the protocol. */
const UNUSABLE_REPLIES: ReadonlySet<unknown> = new Set(['SyntaxError', 'ZodError', '$ZodError', 'SdkError'])

/** Whether an older server may have been confused by `server/discover`: it ended, was silent, or sent something else. */
function isUnclear({ kind }: ServerTarget, error: unknown): boolean {
  const { name, code, cause } = error as { name?: unknown; code?: unknown; cause?: { name?: unknown } }
  if (code === 'REQUEST_TIMEOUT' || (kind === 'stdio' && error instanceof ToolServerError)) return true
  if (code !== 'ERA_NEGOTIATION_FAILED') return false
  return kind === 'stdio' || name === 'SdkHttpError' || UNUSABLE_REPLIES.has(cause?.name)
}

async function openTransport(target: ServerTarget, parts: OpenParts): Promise<OpenClient> {
  if (target.kind === 'stdio') return openProgram(target, parts)
  if (target.protocol === 'sse') return openHttp(target, 'sse', parts)
  try {
    return await openHttp(target, 'streamable', parts)
  } catch (error) {
    const { code } = toToolServerError(error)
    if (target.protocol !== 'auto' || target.handshake === 'discover' || (code !== 404 && code !== 405))
      throw error
    return openHttp(target, 'sse', parts)
  }
}
