/** Builds the request of one attempt: headers for the worker, and the body with the canonical model. @hot */
import type { ModelParameters } from '../contracts/model-targets.ts'
import type { RelayContext } from '../contracts/relay-context.ts'
import type { RelayOptions } from '../contracts/relay-options.ts'
import type { RoutingPeek } from '../contracts/request.ts'
import type { UpstreamRequest } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { isObject } from '../wire/is-object.ts'
import { skipSpace, skipValue } from '../wire/json-bytes.ts'
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

const ASKED = '"stream_options":{"include_usage":true},'

/** Replaces the bytes from `start` to `end`. */
interface BodyEdit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/**
 * Asks a worker for the token usage of a streamed chat or completion: sets `stream_options.include_usage` in the bytes of the
 * body. Only an existing `stream_options` object is parsed.
 *
 * @returns null if the body asks already, or has `stream_options` that the worker is to reject
 * @source OpenAI API reference, chat completions, stream_options
 */
export function usageEdit(body: Buffer, { streamOptionsStart: start }: RoutingPeek): BodyEdit | null {
  if (start < 0) {
    const open = skipSpace(body, 0) + 1
    return { start: open, end: open, text: ASKED }
  }
  const end = skipValue(body, start)
  const options = parseOptions(body.toString('utf8', start, end))
  if (options !== null && !isObject(options)) return null
  if (options?.include_usage === true) return null
  return { start, end, text: JSON.stringify({ ...options, include_usage: true }) }
}

/** @returns undefined for a string with an invalid escape, which the scan of a body does not notice */
function parseOptions(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
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
