/**
 * A token bucket as one 64-bit word in shared memory: the moment at which it will be full again, in nanoseconds.
 * Taking tokens moves the moment on, giving them back moves it back; a moment in the past is a full bucket. So a bucket
 * needs no refill, whole numbers only, one compare-and-swap a request, and an idle one is as good as a new one.
 */

const SECOND_NS = 1_000_000_000n
const MINUTE_NS = 60n * SECOND_NS

/** How fast a bucket fills and how much it holds. */
export interface BucketSize {
  /** Nanoseconds until one token has come back. */
  readonly tokenNs: bigint
  /** Nanoseconds from empty to full. */
  readonly fullNs: bigint
  /** Tokens that it holds. */
  readonly capacity: number
}

/** @param perSecond tokens that come back each second, fractions allowed; @param burst tokens that it holds */
export function bucketPerSecond(perSecond: number, burst: number): BucketSize {
  const tokenNs = BigInt(Math.max(1, Math.round(1e9 / perSecond)))
  return { tokenNs, fullNs: tokenNs * BigInt(burst), capacity: burst }
}

/** Holds a minute's worth. */
export function bucketPerMinute(perMinute: number): BucketSize {
  const capacity = BigInt(perMinute)
  // Never faster than asked for: the time of a token is rounded up.
  const tokenNs = (MINUTE_NS + capacity - 1n) / capacity
  return { tokenNs, fullNs: tokenNs * capacity, capacity: perMinute }
}

/** Nanoseconds until that many tokens could be taken; 0 when they can now. */
export function bucketWaitNs(moment: bigint, size: BucketSize, tokens: number, nowNs: bigint): bigint {
  const start = moment > nowNs ? moment : nowNs
  const wait = start + size.tokenNs * BigInt(tokens) - nowNs - size.fullNs
  return wait > 0n ? wait : 0n
}

/** Takes tokens if they are there. @returns nanoseconds to wait, 0 when they were taken */
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

/** Takes tokens even into debt, or gives back when negative. Never fuller than full: the past is cut off at use. */
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

/** Tokens left, negative in debt. */
export function tokensLeft(moment: bigint, size: BucketSize, nowNs: bigint): number {
  return moment > nowNs
    ? size.capacity - Number((moment - nowNs + size.tokenNs - 1n) / size.tokenNs)
    : size.capacity
}

/** Whole seconds for a Retry-After header, at least 1. */
export function toRetryAfterSec(waitNs: bigint): number {
  return Math.max(1, Number((waitNs + SECOND_NS - 1n) / SECOND_NS))
}
