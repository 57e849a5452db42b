/** Maps an error inside a response to the HTTP status that it stands for. */

import type { GatewayError } from '#kernel'
import { streamFailure, type WorkerMessage } from '#shared'

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
  const words = `${error?.code ?? ''} ${error?.type ?? ''}`
  const status = STATUS_OF_WORD.find(([word]) => word.test(words))?.[1]
  return streamFailure(error?.text ?? 'it gave no reason', status)
}
