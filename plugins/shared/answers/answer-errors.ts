/** Errors of worker responses, and of requests that a worker's format cannot express. */
import { defineErrors, type GatewayError } from '#kernel'

/** The definition of a 400 that the client's request causes. */
export const clientError = <Args extends unknown[]>(text: (...args: Args) => string) =>
  ({ kind: 'bad_request', source: 'client', text }) as const

export const answerErrors = defineErrors('answer', {
  unsupported_by_worker: clientError((what: string) => `the workers of this model do not support ${what}`),
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
  worker_answer_too_long: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (limit: number) => `the worker's response exceeds ${limit} bytes`,
  },
})

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
