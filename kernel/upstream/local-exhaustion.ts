/** Attempts that fail because the gateway itself has no descriptors, ports or memory left; no worker is at fault. */
import type { Logger } from '../contracts/log.ts'
import { UpstreamFailure } from '../contracts/transport.ts'
import { upstreamErrors } from './upstream-errors.ts'

const LOCAL_CODES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM'])
const LOG_EVERY_MS = 60_000

/** True if a call failed because of an exhausted local resource. */
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
