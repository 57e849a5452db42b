/**
 * Ids of tool calls: a worker's own in the form that clients of the format expect, and back again without remembering any.
 */

const SERVER_PREFIX = 'mcptoolu_'
const PREFIX = 'toolu_'
/** Stands before ids with characters that the format does not allow. */
const ENCODED = `${PREFIX}x_`
const ALLOWED = /^[A-Za-z0-9_-]+$/

export function toClientId(id: string): string {
  if (!ALLOWED.test(id) || id.startsWith('x_')) return ENCODED + Buffer.from(id).toString('base64url')
  return id.startsWith(PREFIX) ? id : PREFIX + id
}

export function toWorkerId(id: string): string {
  if (id.startsWith(ENCODED)) return Buffer.from(id.slice(ENCODED.length), 'base64url').toString()
  return id.startsWith(PREFIX) && id.length > PREFIX.length ? id.slice(PREFIX.length) : id
}

/** Of a call that the gateway runs itself; a client only sends it back. */
export function toServerCallId(id: string): string {
  return SERVER_PREFIX + toClientId(id).slice(PREFIX.length)
}
