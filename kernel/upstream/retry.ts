/** When another attempt follows a failed one, and after how long. Numbers only: `call-run.ts` acts on them. */
import type { KernelConfig } from '../config/kernel-config.ts'
import type { RandomSource } from '../contracts/policy.ts'
import type { WorkerResilience } from '../contracts/worker.ts'

/** Settings of retries: of the kernel, or of one worker that overrides some of them. */
export interface RetrySettings {
  /** The first one included. */
  readonly maxAttempts: number
  readonly initialBackoffMs: number
  readonly maxBackoffMs: number
  /** Longest Retry-After that is waited for. */
  readonly maxWaitMs: number
  readonly backoffMultiplier: number
  /** 0 to 1. */
  readonly jitterFactor: number
  /** Of workers: failures for the breaker, and reasons for another attempt. */
  readonly statuses: ReadonlySet<number>
}

/** A timer takes a longer time for none: a worker's own settings have no limit. milliseconds */
const MAX_TIMER_MS = 2_147_483_647

/** No status below this is a failure, whatever a worker's own list says: the answer may be on its way already. */
const FIRST_FAILURE_STATUS = 400

export class RetryRules {
  kernel: RetrySettings
  /** Entries of the worker table are immutable, so what is merged once stays right. */
  #byOverride = new WeakMap<WorkerResilience, RetrySettings>()

  constructor(config: KernelConfig['retry']) {
    this.kernel = { ...config, statuses: new Set(config.statuses) }
  }

  /** Other settings hold from the next failure on. */
  configure(config: KernelConfig['retry']): void {
    this.kernel = { ...config, statuses: new Set(config.statuses) }
    this.#byOverride = new WeakMap()
  }

  /** The settings after an attempt on this worker. @param resilience null where the kernel's settings hold */
  of(resilience: WorkerResilience | null): RetrySettings {
    if (resilience === null) return this.kernel
    const known = this.#byOverride.get(resilience)
    if (known !== undefined) return known
    const merged = merge(this.kernel, resilience)
    this.#byOverride.set(resilience, merged)
    return merged
  }

  /** True for a status that counts as a failure of the worker. */
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
 * The wait before the next attempt, in milliseconds: it grows from attempt to attempt up to the cap, varies by the
 * jitter after the cap, and is at least what the worker asked for, as far as the cap allows.
 *
 * @param failed attempts that have failed so far, 1 or more
 * @param askedMs what the worker's Retry-After said; 0 when it said nothing
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
 * What a Retry-After header asks for, in milliseconds from now; 0 when it asks for nothing that can be read.
 *
 * @param nowMs `Date.now()`
 * @source RFC 9110 §10.2.3
 */
export function retryAfterMs(value: string | undefined, nowMs: number): number {
  if (value === undefined) return 0
  const text = value.trim()
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  // A date needs letters: Date.parse would take numbers that are none, such as -1 or 1.5, for years.
  if (!/^[A-Za-z]{3}/.test(text)) return 0
  const atMs = Date.parse(text)
  return Number.isNaN(atMs) ? 0 : Math.max(0, atMs - nowMs)
}
