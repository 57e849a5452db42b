/** Words of a worker about an error: in its body, or in an event of its stream. */
import { isObject, parseBoundedText } from '#kernel'

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

/** @throws SyntaxError for text that is not JSON, TypeError for JSON that is not an object */
export function readAnswerObject(text: string): Readonly<Record<string, unknown>> {
  const value = parseBoundedText(text)
  if (!isObject(value)) throw new TypeError('the answer holds no JSON object')
  return value
}

/**
 * Reads an event of a stream.
 * @param name the `event` field; null if there is none
 * @throws as `readAnswerObject`, unless it is an error
 */
export function readStreamEvent(text: string, name: string | null): Readonly<Record<string, unknown>> {
  if (name !== ERROR) return readAnswerObject(text)
  try {
    const value = parseBoundedText(text)
    return isObject(value) ? value : { message: text }
  } catch {
    return { message: text }
  }
}

const ERROR = 'error'

/**
 * The error that an event reports: by its name, its type, its object, or a member `error` without a type beside it.
 * @returns null for other events
 */
export function errorOfEvent(
  event: Readonly<Record<string, unknown>>,
  name: string | null,
): WorkerMessage | null {
  const { type, object, error } = event
  const isError = name === ERROR || type === ERROR || object === ERROR
  const isMember = type === undefined && error !== undefined && error !== null
  if (!isError && !isMember) return null
  return workerMessage(event) ?? { text: 'no reason given', code: null, param: null, type: null }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function shortTextOf(value: unknown): string | null {
  const text = textOf(value)
  return text !== null && text.length <= MAX_PARAM_LENGTH ? text : null
}
