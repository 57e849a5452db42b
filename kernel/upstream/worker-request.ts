/** Builds the request of one attempt: headers for the worker, and the body with the canonical model. @hot */
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { RelayOptions } from '../contracts/relay-options.ts'
import type { RoutingPeek } from '../contracts/request.ts'
import type { BodyEdit } from '../contracts/response-format.ts'
import type { UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { OutgoingHeaders } from './outgoing.ts'

/** Replaces the model of a body; every other byte stays the same. */
export function withModel(body: Buffer, peek: RoutingPeek, model: string): Buffer {
  return peek.modelStart < 0 ? body : editedBody(body, [modelEdit(peek, model)])
}

/**
 * Replaces an alias in the request's body.
 *
 * @param named model that the client sent
 * @param model its canonical id
 * @param edit another change of the body; null for none
 */
export function canonicalBody(
  ctx: RelayContext,
  named: string | null,
  model: string,
  edit: BodyEdit | null,
): Buffer {
  const body = ctx.rawBody
  const isAlias = named !== null && named !== model
  if (!isAlias) return edit === null ? body : editedBody(body, [edit])
  const peek = ctx.peek()
  if (edit === null || peek.modelStart < 0) return withModel(body, peek, model)
  return editedBody(body, [edit, modelEdit(peek, model)])
}

/** Sets members of a body that the client sent. Parses it, so that no member is sent twice. */
export function withParameters(body: Buffer, parameters: ModelParameters): Buffer {
  return Buffer.from(JSON.stringify(mergeParameters(JSON.parse(body.toString('utf8')), parameters)))
}

/** Replaces or adds members, and removes those whose parameter is null. */
export function mergeParameters(
  members: Readonly<Record<string, unknown>>,
  parameters: ModelParameters,
): Record<string, unknown> {
  const merged = Object.entries({ ...members, ...parameters })
  return Object.fromEntries(merged.filter(([name]) => parameters[name] !== null))
}

function modelEdit({ modelStart, modelEnd }: RoutingPeek, model: string): BodyEdit {
  return { start: modelStart, end: modelEnd, text: JSON.stringify(model) }
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

/** @param edits of ranges that do not overlap. bench: relay-sse */
export function editedBody(body: Buffer, edits: readonly BodyEdit[]): Buffer {
  const ordered = edits.length === 1 ? edits : edits.toSorted((a, b) => a.start - b.start)
  let bytes = body.length
  for (const { start, end, text } of edits) bytes += Buffer.byteLength(text) - (end - start)
  const edited = Buffer.allocUnsafe(bytes)
  let from = 0
  let to = 0
  for (const { start, end, text } of ordered) {
    to += body.copy(edited, to, from, start)
    to += edited.write(text, to)
    from = end
  }
  body.copy(edited, to, from)
  return edited
}
