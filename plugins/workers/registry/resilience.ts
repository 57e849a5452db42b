/** A worker's own retry, breaker and connection settings: from their wire form to that of the routing threads. */
import type { WorkerHttpPool, WorkerResilience } from '#kernel'
import { workerErrors } from './errors.ts'
import type { HttpPoolWire, ResilienceWire } from './wire.ts'

/**
 * @returns null when nothing is set
 */
export function toResilience(wire: ResilienceWire | null | undefined): WorkerResilience | null {
  if (wire == null) return null
  return someOf<WorkerResilience>({
    maxAttempts: wire.max_retries,
    initialBackoffMs: wire.initial_backoff_ms,
    maxBackoffMs: wire.max_backoff_ms,
    maxWaitMs: wire.max_wait_ms,
    backoffMultiplier: wire.backoff_multiplier,
    jitterFactor: wire.jitter_factor,
    disableRetry: wire.disable_retry,
    failureThreshold: wire.cb_failure_threshold,
    successThreshold: wire.cb_success_threshold,
    openMs: toMs(wire.cb_timeout_secs),
    disableBreaker: wire.disable_circuit_breaker,
    retryableStatuses: wire.retryable_status_codes,
  })
}

/**
 * @returns null when nothing is set
 */
export function toHttpPool(wire: HttpPoolWire | null | undefined): WorkerHttpPool | null {
  if (wire == null) return null
  return someOf<WorkerHttpPool>({
    maxIdle: wire.pool_max_idle_per_host,
    idleMs: toMs(wire.pool_idle_timeout_secs),
    requestMs: toMs(wire.timeout_secs),
    connectMs: toMs(wire.connect_timeout_secs),
  })
}

/** Checks what a schema cannot say. @throws invalid_resilience (400) */
export function checkResilience(wire: ResilienceWire | null | undefined): void {
  const { initial_backoff_ms: initialMs, max_backoff_ms: maxMs } = wire ?? {}
  if (initialMs == null || maxMs == null || maxMs >= initialMs) return
  const field = 'resilience.max_backoff_ms'
  throw workerErrors.invalid_resilience.with(
    { param: field },
    field,
    'must not be less than initial_backoff_ms',
  )
}

function toMs(seconds: number | null | undefined): number | undefined {
  return seconds == null ? undefined : seconds * 1_000
}

type Nullable<T> = { readonly [Key in keyof T]: T[Key] | null | undefined }

/** Without the members that are not set; null when none is. */
function someOf<T extends object>(members: Nullable<T>): T | null {
  const set = Object.entries(members).filter(([, value]) => value !== null && value !== undefined)
  return set.length === 0 ? null : (Object.fromEntries(set) as T)
}
