/**
 * Request headers that policies read: session keys and the target worker. Kept on every route.
 * @hot
 */
import type { PickRequest } from '#kernel'

/** Session key; the first non-empty header is used. */
export const ROUTING_KEY_HEADERS: readonly string[] = Object.freeze([
  'x-weir-routing-key',
  'x-smg-routing-key',
])

/** Headers that consistent_hashing reads. */
export const SESSION_HEADERS: readonly string[] = Object.freeze([
  ...ROUTING_KEY_HEADERS,
  'x-weir-target-worker',
  'x-smg-target-worker',
  'authorization',
  'x-forwarded-for',
  'cookie',
])

/** The session key of the request; empty if it has none. */
export function routingKey(request: PickRequest): string {
  for (let i = 0; i < ROUTING_KEY_HEADERS.length; i++) {
    const key = request.header(ROUTING_KEY_HEADERS[i])
    if (key !== undefined && key !== '') return key
  }
  return ''
}

/** The requested worker number; undefined if the header is missing. */
export function targetWorker(request: PickRequest): string | undefined {
  return request.header('x-weir-target-worker') ?? request.header('x-smg-target-worker')
}

/** Identifies the client if the request has no session key; empty if it cannot be identified. */
export function implicitKey(request: PickRequest): string {
  return (
    request.header('authorization') || request.header('x-forwarded-for') || request.header('cookie') || ''
  )
}
