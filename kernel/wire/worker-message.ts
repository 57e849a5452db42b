/** What a worker says about an error, in the body of its response or in an event of its stream. */
import { isObject } from './is-object.ts'

/** Levels of nested error objects that are read. */
const MAX_DEPTH = 4
const MAX_PARAM_LENGTH = 100

export interface WorkerMessage {
  readonly text: string
  readonly code: string | null
  readonly param: string | null
  /** Such as `rate_limit_error`. */
  readonly type: string | null
}

/**
 * Reads the usual shapes: `{error: {message, code}}`, `{message}`, `{detail}`, a text.
 * @returns null if it has no text
 */
export function workerMessage(value: unknown, depth = 0): WorkerMessage | null {
  if (typeof value === 'string') return { text: value, code: null, param: null, type: null }
  if (!isObject(value) || depth >= MAX_DEPTH) return null
  const { error, message, detail, code, param, type } = value
  const inner =
    workerMessage(error, depth + 1) ?? workerMessage(message, depth + 1) ?? workerMessage(detail, depth + 1)
  if (inner === null) return null
  return {
    text: inner.text,
    code: inner.code ?? textOf(code),
    param: inner.param ?? shortTextOf(param),
    type: inner.type ?? textOf(type),
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function shortTextOf(value: unknown): string | null {
  const text = textOf(value)
  return text !== null && text.length <= MAX_PARAM_LENGTH ? text : null
}
