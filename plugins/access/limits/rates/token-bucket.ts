/**
 * A token bucket as one 64-bit word in shared memory: the time at which it will be full again, in nanoseconds (GCRA).
 * Taking tokens adds to the time, returning them subtracts; a time in the past means a full bucket. A bucket needs no
 * refill timer and one compare-and-swap per request.
 */

const SECOND_NS = 1_000_000_000n
const MINUTE_NS = 60n * SECOND_NS
export const MS_NS = 1_000_000n

/** Rate and capacity of a bucket. */
export interface BucketSize {
  /** Nanoseconds per token. */
  readonly tokenNs: bigint
  /** Nanoseconds from empty to full. */
  readonly fullNs: bigint
  readonly capacity: number
}

/** @param perSecond refill rate, may be fractional; @param burst capacity */
export function bucketPerSecond(perSecond: number, burst: number): BucketSize {
  const tokenNs = BigInt(Math.max(1, Math.round(1e9 / perSecond)))
  return { tokenNs, fullNs: tokenNs * BigInt(burst), capacity: burst }
}

/** The capacity is the rate of one minute. */
export function bucketPerMinute(perMinute: number): BucketSize {
  const capacity = BigInt(perMinute)
  // Rounded up, so that the rate is never exceeded.
  const tokenNs = (MINUTE_NS + capacity - 1n) / capacity
  return { tokenNs, fullNs: tokenNs * capacity, capacity: perMinute }
}

/** Nanoseconds until that many tokens are available; 0 if they are now. */
export function bucketWaitNs(moment: bigint, size: BucketSize, tokens: number, nowNs: bigint): bigint {
  const start = moment > nowNs ? moment : nowNs
  const wait = start + size.tokenNs * BigInt(tokens) - nowNs - size.fullNs
  return wait > 0n ? wait : 0n
}

/** Takes tokens if available. @returns 0 if taken, else nanoseconds to wait */
export function takeTokens(
  words: BigInt64Array,
  index: number,
  size: BucketSize,
  tokens: number,
  nowNs: bigint,
): bigint {
  for (;;) {
    const moment = Atomics.load(words, index)
    const wait = bucketWaitNs(moment, size, tokens, nowNs)
    if (wait > 0n) return wait
    const next = (moment > nowNs ? moment : nowNs) + size.tokenNs * BigInt(tokens)
    if (Atomics.compareExchange(words, index, moment, next) === moment) return 0n
  }
}

/** Takes tokens unconditionally, also below zero; a negative number returns tokens. */
export function chargeTokens(
  words: BigInt64Array,
  index: number,
  size: BucketSize,
  tokens: number,
  nowNs: bigint,
): void {
  for (;;) {
    const moment = Atomics.load(words, index)
    const next = (moment > nowNs ? moment : nowNs) + size.tokenNs * BigInt(tokens)
    if (Atomics.compareExchange(words, index, moment, next) === moment) return
  }
}

/** Remaining tokens; negative after an overrun. */
export function tokensLeft(moment: bigint, size: BucketSize, nowNs: bigint): number {
  return moment > nowNs
    ? size.capacity - Number((moment - nowNs + size.tokenNs - 1n) / size.tokenNs)
    : size.capacity
}

/** Whole seconds for a Retry-After header, at least 1. */
export function toRetryAfterSec(waitNs: bigint): number {
  return Math.max(1, Number((waitNs + SECOND_NS - 1n) / SECOND_NS))
}
