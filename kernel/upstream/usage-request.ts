/**
 * Asks a worker for the token usage of a streamed chat or completion: sets `stream_options.include_usage` in the bytes of
 * the body. Only an existing `stream_options` object is parsed. @hot
 * @source OpenAI API reference, chat completions, stream_options
 */
import type { RoutingPeek } from '../contracts/request.ts'
import { isObject } from '../wire/is-object.ts'
import { skipSpace, skipValue } from '../wire/json-bytes.ts'

const ASKED = '"stream_options":{"include_usage":true},'

/** Replaces the bytes from `start` to `end`. */
export interface BodyEdit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** @returns null if the body asks already, or has `stream_options` that the worker is to reject */
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
