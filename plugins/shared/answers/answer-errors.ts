/** Errors of worker responses, of events that report them, and of requests that a worker's format cannot express. */
import {
  defineErrors,
  type GatewayError,
  isObject,
  parseBoundedText,
  type WorkerMessage,
  workerMessage,
} from '#kernel'

/** The definition of a 400 that the client's request causes. */
export const clientError = <Args extends unknown[]>(text: (...args: Args) => string) =>
  ({ kind: 'bad_request', source: 'client', text }) as const

export const answerErrors = defineErrors('answer', {
  unsupported_by_worker: clientError((what: string) => `the workers of this model do not support ${what}`),
  unreadable_text: clientError(
    (charset: string) =>
      `the bytes of a file of text are not valid in the charset '${charset}', or the charset is unknown; name it in the content type, such as text/plain; charset=windows-1252`,
  ),
  extra_content_too_long: clientError(
    (limit: number) => `extra_content of a call or message exceeds ${limit} characters of JSON`,
  ),
  worker_stream_failed: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: (message: string) => `the worker's response failed: ${message}`,
  },
  worker_refused: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (message: string) => message,
  },
  worker_aborted: {
    kind: 'bad_gateway',
    source: 'worker',
    text: () => 'the worker aborted before its answer was complete',
  },
  worker_answer_too_long: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (limit: number) => `the worker's response exceeds ${limit} bytes`,
  },
})

/** Whether an engine reports by this finish reason that it has aborted the answer. */
export function isAbort(reason: unknown): boolean {
  return reason === 'abort' || reason === 'error'
}

const MAX_ERROR_TEXT = 1_000
const FIRST_RETRYABLE = 429

/**
 * The error of a response that failed after its head.
 * @param text of the worker
 * @param status that the worker would have responded with; undefined if unknown
 */
export function streamFailure(text: string, status?: number): GatewayError {
  const message = text.slice(0, MAX_ERROR_TEXT)
  if (status === undefined) return answerErrors.worker_stream_failed(message)
  // An invalid request fails with every worker.
  return status < FIRST_RETRYABLE
    ? answerErrors.worker_refused.with({ status }, message)
    : answerErrors.worker_stream_failed.with({ status }, message)
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
