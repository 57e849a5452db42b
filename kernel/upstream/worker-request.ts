/** Makes the request for one attempt: the worker's headers, and the body as this worker needs it. @hot */
import type { RelayContext } from '../contracts/reply-sink.ts'
import type { UpstreamRequest } from '../contracts/transport.ts'
import type { RelayOptions } from '../contracts/upstream.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { OutgoingHeaders } from './outgoing.ts'
import { withModel } from './rewrite-model.ts'

/** The body with the canonical model in it. @param named by the client @param model what that stands for */
export function canonicalBody(ctx: RelayContext, named: string | null, model: string, body: Buffer): Buffer {
  const isAlias = named !== null && named !== model
  return isAlias ? withModel(body, ctx.peek(), model) : body
}

/** @param body as every worker may have it */
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
