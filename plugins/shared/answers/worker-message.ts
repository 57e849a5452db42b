/** Events of a worker's stream, and the errors that they report. */
import { isObject, parseBoundedText, type WorkerMessage, workerMessage } from '#kernel'

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
