/** Makes the request for one attempt: body with the canonical model, headers with the worker's key. */
import type { AuthService } from '../contracts/auth.ts'
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { RoutingPeek } from '../contracts/request.ts'
import type { HeaderList } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'

/**
 * The worker's key replaces the client's; the client's own goes on only when the worker has none and it is
 * not one of the gateway's. @source routes facts 4.7
 */
export function outgoingHeaders(
  ctx: RelayContext,
  worker: WorkerEntry,
  auth: AuthService | null,
): HeaderList {
  const headers = ctx.forwardedHeaders.slice()
  headers.push('content-type', 'application/json', 'x-request-id', ctx.requestId)
  if (worker.apiKey !== null) {
    headers.push('authorization', `Bearer ${worker.apiKey}`)
    return headers
  }
  const own = ctx.header('authorization')
  if (own !== undefined && (auth === null || !auth.isGatewayKey(own))) headers.push('authorization', own)
  return headers
}

/** The same body with another model; everything else stays byte for byte. */
export function withModel(body: Buffer, peek: RoutingPeek, model: string): Buffer {
  if (peek.modelStart < 0) return body
  const value = Buffer.from(JSON.stringify(model))
  return Buffer.concat([body.subarray(0, peek.modelStart), value, body.subarray(peek.modelEnd)])
}
