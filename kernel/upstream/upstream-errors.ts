/** Errors that clients get when a worker fails. Worker addresses appear in the log only. */

import type { Logger } from '../contracts/log.ts'
import { UpstreamFailure } from '../contracts/transport.ts'
import { defineErrors } from '../errors/define-errors.ts'
import { type GatewayError, retryAfter } from '../errors/gateway-error.ts'

export const upstreamErrors = defineErrors('upstream', {
  gateway_exhausted: {
    kind: 'unavailable',
    source: 'gateway',
    retry: 'before-first-byte',
    text: (code: string) =>
      `the gateway has no descriptor or port left to call a worker (${code}); try again shortly`,
  },
  call_upstream_connection_failed: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the worker could not be reached',
  },
  call_upstream_timeout: {
    kind: 'gateway_timeout',
    source: 'worker',
    retry: 'before-first-byte',
    text: (what: string) => `the worker took too long: ${what}`,
  },
  call_upstream_request_error: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the worker closed the connection before it sent a response',
  },
  call_upstream_decode_error: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the worker sent a response that is not HTTP/1.1',
  },
  worker_credentials_rejected: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () =>
      "a worker rejected the gateway's own credentials; the operator of the gateway must correct the worker's api_key",
  },
  worker_not_streaming: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'a worker answered a stream request without a stream',
  },
  worker_answered_page: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'a worker answered with an HTML page; the operator of the gateway must correct its url',
  },
  worker_full: {
    kind: 'unavailable',
    source: 'worker',
    retry: 'before-first-byte',
    text: () => 'the context of the worker is full with other requests; try again later',
  },
  worker_refused: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (message: string) => message,
  },
  read_response_body_failed: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (what: string) => `the worker's response ended early: ${what}`,
  },
  stream_idle_timeout: {
    kind: 'gateway_timeout',
    source: 'worker',
    text: () => "the worker's response ended early: silence for longer than the idle limit",
  },
  stream_first_token_timeout: {
    kind: 'gateway_timeout',
    source: 'worker',
    text: () => "the worker's response ended early: no byte of the body within the first-token limit",
  },
  stream_timeout: {
    kind: 'gateway_timeout',
    source: 'worker',
    text: () => "the worker's response ended early: it was not complete within the request limit",
  },
  pairs_unsupported: {
    kind: 'not_implemented',
    source: 'gateway',
    text: (mode: string) =>
      `no enabled plugin runs prefill/decode pairs of ${mode} workers; enable plugin pairs, or the one that reaches them`,
  },
  ask_response_invalid: {
    kind: 'bad_gateway',
    source: 'worker',
    text: (path: string, status: number, problem: string) =>
      `the worker's response to ${path} (status ${status}) is not JSON: ${problem}`,
  },
  ask_after_end: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'upstream.ask needs a request that is not complete; use host.detached for work without one',
  },
  upstream_internal_error: { kind: 'internal', source: 'gateway', text: () => 'internal server error' },
  unsupported_connection_mode: {
    kind: 'not_implemented',
    source: 'gateway',
    text: (mode: string) => `no enabled plugin can reach ${mode} workers`,
  },
})

/** Seconds after which a full worker is worth another request. */
const FULL_RETRY = retryAfter(1)

/** @param hasResponse true if the worker's status had arrived */
export function toUpstreamError(failure: UpstreamFailure, hasResponse: boolean): GatewayError {
  const cause = failure
  if (failure.error !== null) return failure.error
  if (hasResponse) return toBrokenResponse(failure)
  switch (failure.kind) {
    case 'connect':
      return upstreamErrors.call_upstream_connection_failed.with({ cause })
    case 'first_byte_timeout':
      return upstreamErrors.call_upstream_timeout.with({ cause }, 'no response within headMs or firstTokenMs')
    case 'idle_timeout':
      return upstreamErrors.call_upstream_timeout.with({ cause }, 'silence for longer than the idle limit')
    case 'request_timeout':
      return upstreamErrors.call_upstream_timeout.with(
        { cause },
        'no complete response within the request limit',
      )
    case 'reset':
      return upstreamErrors.call_upstream_request_error.with({ cause })
    case 'full':
      return upstreamErrors.worker_full.with({ cause, ...FULL_RETRY })
    case 'protocol':
    case 'refused':
      return upstreamErrors.call_upstream_decode_error.with({ cause })
  }
}

function toBrokenResponse(failure: UpstreamFailure): GatewayError {
  const cause = failure
  switch (failure.kind) {
    case 'first_byte_timeout':
      return upstreamErrors.stream_first_token_timeout.with({ cause })
    case 'idle_timeout':
      return upstreamErrors.stream_idle_timeout.with({ cause })
    case 'request_timeout':
      return upstreamErrors.stream_timeout.with({ cause })
    case 'protocol':
      return upstreamErrors.read_response_body_failed.with({ cause }, 'it is not HTTP/1.1')
    default:
      return upstreamErrors.read_response_body_failed.with({ cause }, 'connection lost')
  }
}

const LOCAL_CODES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM'])
const LOG_EVERY_MS = 60_000

/** True if a call failed because the gateway itself has no descriptors, ports or memory left; no worker is at fault. */
export function isLocalExhaustion(error: unknown): boolean {
  if (!(error instanceof UpstreamFailure)) return false
  return LOCAL_CODES.has((error.cause as NodeJS.ErrnoException | undefined)?.code)
}

/** The same failure with the error `gateway_exhausted`; null if the worker may be at fault. */
export function toLocalFailure(failure: UpstreamFailure): UpstreamFailure | null {
  if (!isLocalExhaustion(failure)) return null
  const { code } = failure.cause as NodeJS.ErrnoException
  const { kind, message, responseStarted } = failure
  const error = upstreamErrors.gateway_exhausted(String(code))
  return new UpstreamFailure(kind, message, responseStarted, { cause: failure.cause, error })
}

let loggedAtMs = Number.NEGATIVE_INFINITY

/** Logs at most one line per minute and thread. */
export function logExhaustion(log: Logger, reason: string): void {
  const nowMs = performance.now()
  if (nowMs - loggedAtMs < LOG_EVERY_MS) return
  loggedAtMs = nowMs
  log.error(
    { reason, advice: 'raise ulimit -n, or limit connections in front of the gateway' },
    'gateway out of descriptors or ports',
  )
}
