/** Builds the request of one attempt: headers for the worker, and the body with the canonical model. @hot */
import type { RelayContext } from '../contracts/relay-context.ts'
import type { RoutingPeek } from '../contracts/request.ts'
import type { UpstreamRequest } from '../contracts/transport.ts'
import type { RelayOptions } from '../contracts/upstream.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { OutgoingHeaders } from './outgoing.ts'

/** Replaces the model of a body; every other byte stays the same. */
export function withModel(body: Buffer, peek: RoutingPeek, model: string): Buffer {
  if (peek.modelStart < 0) return body
  const value = Buffer.from(JSON.stringify(model))
  return Buffer.concat([body.subarray(0, peek.modelStart), value, body.subarray(peek.modelEnd)])
}

/** Replaces an alias in the body. @param named model that the client sent @param model its canonical id */
export function canonicalBody(ctx: RelayContext, named: string | null, model: string, body: Buffer): Buffer {
  const isAlias = named !== null && named !== model
  return isAlias ? withModel(body, ctx.peek(), model) : body
}

export function toWorkerRequest(
  ctx: RelayContext,
  options: RelayOptions,
  outgoing: OutgoingHeaders,
  worker: WorkerEntry,
  body: Buffer,
): UpstreamRequest {
  return {
    method: options.method ?? 'POST',
    path: options.path,
    headers: outgoing.of(ctx, worker, options.headers),
    body,
  }
}
