/** Maps an error inside a response to the HTTP status that it stands for. */

import type { GatewayError } from '#kernel'
import { answerErrors, type WorkerMessage } from '#shared'

const MAX_SAID = 1_000
const FIRST_RETRYABLE = 429
const STATUS_OF_WORD: readonly (readonly [word: RegExp, status: number])[] = [
  [/rate_limit|too_many_requests|quota/, 429],
  [/overload|unavailable/, 503],
  [/timeout/, 504],
  [/authentication|invalid_api_key/, 401],
  [/permission/, 403],
  [/server_error|internal/, 502],
  [/invalid|context_length|bad_request|unsupported/, 400],
]

/** @param error of an error event, or of a response that failed; null if it has no text */
export function toAnswerError(error: WorkerMessage | null): GatewayError {
  const said = error === null ? 'it gave no reason' : error.text.slice(0, MAX_SAID)
  const words = `${error?.code ?? ''} ${error?.type ?? ''}`
  const status = STATUS_OF_WORD.find(([word]) => word.test(words))?.[1]
  if (status === undefined) return answerErrors.worker_stream_failed(said)
  // An invalid request fails with every worker.
  return status < FIRST_RETRYABLE
    ? answerErrors.worker_refused.with({ status }, said)
    : answerErrors.worker_stream_failed.with({ status }, said)
}
