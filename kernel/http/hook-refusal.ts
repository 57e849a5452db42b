/** Refusals of hooks on routes whose clients can read one format alone. */

import { toErrorReply } from '../errors/error-reply.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import type { HttpContext } from './context.ts'
import type { CheckedReply } from './reply-check.ts'

/** What the hook has said stays; what it left out is the format's: headers by name, and the body where there is none. */
export function inFormat(ctx: HttpContext, reply: CheckedReply): CheckedReply {
  const { status, body } = reply
  const error = new GatewayError(
    {
      code: 'refused',
      kind: 'forbidden',
      source: 'gateway',
      isRetryable: false,
      message: `the request was refused with status ${status}`,
    },
    { status },
  )
  const format = ctx.route.errors
  const headers = [...reply.headers]
  const add = (name: string, value: string) => {
    for (let at = 0; at < headers.length; at += 2) if (headers[at].toLowerCase() === name) return
    headers.push(name, value)
  }
  const own = format.headers?.(error, ctx) ?? []
  for (let at = 0; at < own.length; at += 2) add(own[at], own[at + 1])
  if (body.length > 0) return { status, headers, body }
  const filled = toErrorReply(error, format, ctx)
  add('content-type', filled.contentType)
  return { status, headers, body: filled.body }
}
