/** Sends a collected answer of a worker on as it is: status, headers, body. */
import type { HeaderList, RequestContext, WorkerReply } from '#kernel'

/** Hop-by-hop headers, and those that the gateway writes itself. @source routes facts 4.7 */
const dropped = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'trailers',
  'transfer-encoding',
  'upgrade',
  'host',
  'content-length',
  'x-request-id',
  'access-control-allow-origin',
  'access-control-expose-headers',
  'access-control-allow-credentials',
])

export function sendReply(ctx: RequestContext, reply: WorkerReply): void {
  ctx.send(reply.status, null, reply.body, passedHeaders(reply.headers))
}

function passedHeaders(headers: HeaderList): HeaderList {
  const kept: HeaderList = []
  for (let i = 0; i < headers.length; i += 2) {
    if (!dropped.has(headers[i])) kept.push(headers[i], headers[i + 1])
  }
  return kept
}
