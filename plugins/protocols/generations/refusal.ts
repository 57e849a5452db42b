/** A worker's refusal in the gateway's words: its status, what it said, and when to come back. */

import type { GatewayError, HeaderList } from '#kernel'
import { headerOf } from '#kernel'
import { parseBoundedText } from '#shared'
import { generationErrors } from './errors.ts'

/** Most of a refusal that is repeated to the client, in characters. */
const MAX_SAID_LENGTH = 1_000
/** Error objects within error objects are followed this far. */
const MAX_DEPTH = 4

/** @param body as far as it was read */
export function toRefusal(status: number, headers: HeaderList, body: Buffer): GatewayError {
  const text = body.toString('utf8')
  const { said, code, param } = spokenIn(parse(text), 0) ?? { said: text.trim(), code: null, param: null }
  const words = said === '' ? `the worker answered with status ${status}` : shorten(said)
  const retryAfter = headerOf(headers, 'retry-after')
  return generationErrors.worker_refused.with(
    {
      status,
      ...(code !== null && { code }),
      ...(param !== null && { param }),
      ...(retryAfter !== undefined && { headers: ['retry-after', retryAfter] }),
    },
    words,
  )
}

interface Spoken {
  readonly said: string
  readonly code: string | null
  readonly param: string | null
}

/** In whichever of the usual shapes it is: `{error: {message, code}}`, `{message}`, `{detail}`, a text. */
function spokenIn(value: unknown, depth: number): Spoken | null {
  if (typeof value === 'string') return { said: value, code: null, param: null }
  if (typeof value !== 'object' || value === null || depth >= MAX_DEPTH) return null
  const { error, message, detail, code, param } = value as Record<string, unknown>
  const inner = spokenIn(error, depth + 1) ?? spokenIn(message, depth + 1) ?? spokenIn(detail, depth + 1)
  if (inner === null) return null
  return {
    said: inner.said,
    code: inner.code ?? (typeof code === 'string' && code !== '' ? code : null),
    param: inner.param ?? textOf(param),
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= 100 ? value : null
}

function parse(text: string): unknown {
  try {
    return parseBoundedText(text)
  } catch {
    return null
  }
}

function shorten(text: string): string {
  return text.length <= MAX_SAID_LENGTH ? text : `${text.slice(0, MAX_SAID_LENGTH)}…`
}
