/** Failures of attempts that are the gateway's own: it has run out of descriptors or ports, and no worker is to blame. */
import type { Logger } from '../contracts/log.ts'
import { UpstreamFailure } from '../contracts/transport.ts'
import { upstreamErrors } from './upstream-errors.ts'

const OWN_CODES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM'])
const LOG_EVERY_MS = 60_000

/** Whether a call failed because the gateway itself has run out of something. */
export function isOwnTrouble(error: unknown): boolean {
  if (!(error instanceof UpstreamFailure)) return false
  return OWN_CODES.has((error.cause as NodeJS.ErrnoException | undefined)?.code)
}

/** The same failure with the gateway's own error in it, or null where the worker may be to blame. */
export function asOwnTrouble(failure: UpstreamFailure): UpstreamFailure | null {
  if (!isOwnTrouble(failure)) return null
  const { code } = failure.cause as NodeJS.ErrnoException
  const { kind, message, responseStarted } = failure
  const error = upstreamErrors.gateway_exhausted(String(code))
  return new UpstreamFailure(kind, message, responseStarted, { cause: failure.cause, error })
}

let saidAtMs = Number.NEGATIVE_INFINITY

/** One line a minute and thread, however many attempts fail. */
export function sayExhausted(log: Logger, reason: string): void {
  const nowMs = performance.now()
  if (nowMs - saidAtMs < LOG_EVERY_MS) return
  saidAtMs = nowMs
  log.error(
    { reason },
    'the gateway has run out of descriptors or ports: raise ulimit -n, or limit connections before it; workers are not blamed',
  )
}
