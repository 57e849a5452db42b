/** A worker's error response as a gateway error: status, message and retry-after. */
import { type GatewayError, type HeaderList, headerOf } from '#kernel'
import { parseBoundedText } from '#shared'
import { generationErrors } from './errors.ts'

/** Characters of the worker's message that the client gets. */
const MAX_MESSAGE_LENGTH = 1_000
/** Levels of nested error objects that are read. */
const MAX_DEPTH = 4

/** @param body its beginning, at most 64 KiB */
export function toRefusal(status: number, headers: HeaderList, body: Buffer): GatewayError {
  const content = body.toString('utf8')
  const plain = { text: content.trim(), code: null, param: null }
  const { text, code, param } = messageIn(parse(content), 0) ?? plain
  const message = text === '' ? `the worker answered with status ${status}` : shorten(text)
  const retryAfter = headerOf(headers, 'retry-after')
  return generationErrors.worker_refused.with(
    {
      status,
      ...(code !== null && { code }),
      ...(param !== null && { param }),
      ...(retryAfter !== undefined && { headers: ['retry-after', retryAfter] }),
    },
    message,
  )
}

interface WorkerMessage {
  readonly text: string
  readonly code: string | null
  readonly param: string | null
}

/** Reads the usual shapes: `{error: {message, code}}`, `{message}`, `{detail}`, a text. */
function messageIn(value: unknown, depth: number): WorkerMessage | null {
  if (typeof value === 'string') return { text: value, code: null, param: null }
  if (typeof value !== 'object' || value === null || depth >= MAX_DEPTH) return null
  const { error, message, detail, code, param } = value as Record<string, unknown>
  const inner = messageIn(error, depth + 1) ?? messageIn(message, depth + 1) ?? messageIn(detail, depth + 1)
  if (inner === null) return null
  return {
    text: inner.text,
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
  return text.length <= MAX_MESSAGE_LENGTH ? text : `${text.slice(0, MAX_MESSAGE_LENGTH)}…`
}
