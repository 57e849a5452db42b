/** Whether another attempt follows a failed one, and how long it waits. */
import type { HeaderList } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { CallParts } from './call-parts.ts'
import { headerOf } from './response-headers.ts'
import { backOffMs, retryAfterMs } from './retry.ts'

/** No further attempt. */
export const NO_MORE = -1

export interface FailedAttempt {
  /** Its settings decide; null when none could be picked: then the kernel's do. */
  readonly worker: WorkerEntry | null
  /** Of the worker's answer; null when there was none. */
  readonly headers: HeaderList | null
  /** 1-based. */
  readonly number: number
  /** Since the request was first routed. */
  readonly usedMs: number
  /** True when a worker that this request has not tried could take it now. */
  hasAnother(): boolean
}

/**
 * The wait in milliseconds; NO_MORE when the attempts, or the time for all of them, are used up, or when the worker asks
 * for more than `maxWaitMs` and there is no other.
 */
export function nextWaitMs(parts: Pick<CallParts, 'retry' | 'limits'>, failed: FailedAttempt): number {
  const { worker, headers, number, usedMs } = failed
  const settings = worker === null ? parts.retry.kernel : parts.retry.of(worker.resilience)
  if (number >= settings.maxAttempts) return NO_MORE
  // A service knows best whether the same request can end otherwise.
  if (headers !== null && headerOf(headers, 'x-should-retry') === 'false') return NO_MORE
  const askedMs = headers === null ? 0 : retryAfterMs(headerOf(headers, 'retry-after'), Date.now())
  if (askedMs > settings.maxWaitMs) return failed.hasAnother() ? 0 : NO_MORE
  const waitMs = backOffMs(settings, number, askedMs, Math.random)
  const totalMs = parts.limits.totalMs(worker)
  return totalMs === 0 || usedMs + waitMs < totalMs ? waitMs : NO_MORE
}
