/**
 * The headers by which a client says where its requests belong; listed in `policy-headers.ts`, so that they are kept.
 * @hot
 */
import type { PickRequest } from '#kernel'
import { ROUTING_KEY_HEADERS } from './policy-headers.ts'

/** The session key of the request; empty when it names none. */
export function routingKey(request: PickRequest): string {
  for (let i = 0; i < ROUTING_KEY_HEADERS.length; i++) {
    const key = request.header(ROUTING_KEY_HEADERS[i])
    if (key !== undefined && key !== '') return key
  }
  return ''
}

/** The worker asked for by its number, as sent; undefined when none is. */
export function targetWorker(request: PickRequest): string | undefined {
  return request.header('x-weir-target-worker') ?? request.header('x-smg-target-worker')
}

/** What stands for a session where no key is given; empty when nothing does. */
export function implicitKey(request: PickRequest): string {
  return (
    request.header('authorization') || request.header('x-forwarded-for') || request.header('cookie') || ''
  )
}
