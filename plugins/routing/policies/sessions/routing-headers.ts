/**
 * Request headers that consistent_hashing reads: the target worker, and what identifies a client. Kept on every route.
 * @hot
 */
import type { PickRequest } from '#kernel'

/** Headers that consistent_hashing reads beside those of sessions. */
export const HASHING_HEADERS: readonly string[] = Object.freeze([
  'x-weir-target-worker',
  'x-smg-target-worker',
  'authorization',
  'x-forwarded-for',
  'cookie',
])

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
