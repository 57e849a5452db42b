/** The retry rules: the settings of each worker, and the wait before the next attempt. */
import type { WorkerBalance } from '../balance/worker-balance.ts'
import type { KernelConfig } from '../config/kernel-config.ts'
import { MAX_TIMER_MS } from '../config/number-settings.ts'
import type { RandomSource } from '../contracts/policy.ts'
import type { WorkerResilience } from '../contracts/worker.ts'

/** Retry settings of the kernel, or of a worker that overrides some of them. */
export type RetrySettings = Omit<KernelConfig['retry'], 'statuses'> & {
  /** Response statuses that count as failures for the breaker and cause another attempt. */
  readonly statuses: ReadonlySet<number>
}

/** Statuses below are never failures, whatever a worker's own list contains. */
const FIRST_FAILURE_STATUS = 400

export class RetryRules {
  kernel: RetrySettings
  /** Merged settings; entries of the worker table are immutable. */
  #byOverride = new WeakMap<WorkerResilience, RetrySettings>()

  constructor(config: KernelConfig['retry']) {
    this.kernel = { ...config, statuses: new Set(config.statuses) }
  }

  /** Applies from the next failure on. */
  configure(config: KernelConfig['retry']): void {
    this.kernel = { ...config, statuses: new Set(config.statuses) }
    this.#byOverride = new WeakMap()
  }

  /** Settings of a worker. @param resilience its overrides; null for the kernel's settings */
  of(resilience: WorkerResilience | null): RetrySettings {
    if (resilience === null) return this.kernel
    const known = this.#byOverride.get(resilience)
    if (known !== undefined) return known
    const merged = merge(this.kernel, resilience)
    this.#byOverride.set(resilience, merged)
    return merged
  }

  /** True if the status counts as a failure of the worker. */
  isFailure(status: number, resilience: WorkerResilience | null): boolean {
    return status >= FIRST_FAILURE_STATUS && this.of(resilience).statuses.has(status)
  }
}

function merge(kernel: RetrySettings, own: WorkerResilience): RetrySettings {
  return {
    maxAttempts: own.disableRetry === true ? 1 : (own.maxAttempts ?? kernel.maxAttempts),
    initialBackoffMs: own.initialBackoffMs ?? kernel.initialBackoffMs,
    maxBackoffMs: own.maxBackoffMs ?? kernel.maxBackoffMs,
    maxWaitMs: own.maxWaitMs ?? kernel.maxWaitMs,
    backoffMultiplier: own.backoffMultiplier ?? kernel.backoffMultiplier,
    jitterFactor: own.jitterFactor ?? kernel.jitterFactor,
    statuses: own.retryableStatuses === undefined ? kernel.statuses : new Set(own.retryableStatuses),
  }
}

/**
 * Delay before the next attempt in milliseconds: it grows with each attempt up to `maxBackoffMs`, then jitter is applied,
 * and it is at least the Retry-After of the worker, up to `maxBackoffMs`.
 *
 * @param failed number of failed attempts, 1 or more
 * @param askedMs Retry-After of the worker; 0 without one
 */
export function backOffMs(
  settings: RetrySettings,
  failed: number,
  askedMs: number,
  random: RandomSource,
): number {
  const { initialBackoffMs, maxBackoffMs, backoffMultiplier, jitterFactor } = settings
  const grown = Math.min(initialBackoffMs * backoffMultiplier ** (failed - 1), maxBackoffMs)
  const wait = grown * (1 + jitterFactor * (2 * random() - 1))
  return Math.min(MAX_TIMER_MS, Math.round(Math.max(wait, Math.min(askedMs, maxBackoffMs))))
}

/**
 * Parses Retry-After into milliseconds from now; 0 if it is absent or invalid.
 *
 * @param nowMs `Date.now()`
 * @source RFC 9110 §10.2.3
 */
export function retryAfterMs(value: string | undefined, nowMs: number): number {
  if (value === undefined) return 0
  const text = value.trim()
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  // Date.parse would read numbers such as -1 or 1.5 as years.
  if (!/^[A-Za-z]{3}/.test(text)) return 0
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - nowMs)
}

/** Mean interval of the checks for room. */
const CHECK_MS = 100

/**
 * Waits for room at a worker that is full with other requests: calls back once one of them has ended. Checks at random
 * times, so that requests that failed together do not start, and fail, together again.
 *
 * @param latestMs `performance.now()` of the call at the latest
 * @returns cancels the wait
 */
export function whenRoom(
  balance: Pick<WorkerBalance, 'inFlight'>,
  slot: number,
  latestMs: number,
  onRoom: () => void,
): () => void {
  // The failed attempt still counts.
  const mostInFlight = Math.max(0, balance.inFlight(slot) - 2)
  const check = () => {
    if (balance.inFlight(slot) <= mostInFlight || performance.now() >= latestMs) onRoom()
    else timer = setTimeout(check, randomDelayMs())
  }
  let timer = setTimeout(check, randomDelayMs())
  return () => clearTimeout(timer)
}

function randomDelayMs(): number {
  return CHECK_MS * (0.5 + Math.random())
}
