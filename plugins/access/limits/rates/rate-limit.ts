/** A limit of requests per second: of this gateway, or shared with other gateways. @hot */
import { type Allowance, rateBucket, type SharedBucket, type TokenShortage } from '../allowance/allowance.ts'
import { type BucketSize, bucketPerSecond, takeTokens, tokensLeft } from './token-bucket.ts'

/** Share of a second's requests that a gateway without its engine admits at once. */
const ALONE_BURST = 0.1

export class RateLimit {
  readonly perSecond: number
  /** Null for a limit of this gateway. */
  readonly shared: SharedBucket | null
  readonly #allowance: Allowance | null
  readonly #words: BigInt64Array
  #size: BucketSize
  /** Parts into which `#size` divides a shared limit. */
  #shares = 0

  /**
   * @param words bucket of this gateway; of a shared limit, for the time without the engine
   * @param burst 0 for the requests of one second
   * @param sharing with the name of the bucket, the same on every gateway
   */
  constructor(
    words: BigInt64Array,
    perSecond: number,
    burst: number,
    sharing: { readonly allowance: Allowance; readonly name: string } | null = null,
  ) {
    this.#words = words
    this.perSecond = perSecond
    this.shared = sharing === null ? null : rateBucket(sharing.name, perSecond)
    this.#allowance = sharing?.allowance ?? null
    this.#size = bucketPerSecond(perSecond, burst > 0 ? burst : Math.max(1, Math.ceil(perSecond)))
  }

  /** Takes one request. @returns 0 if taken, nanoseconds to wait, or the tokens to ask for */
  take(nowNs: bigint): bigint | TokenShortage {
    if (this.#allowance !== null && this.shared !== null) {
      const { shares } = this.#allowance
      if (shares === 0) return this.#allowance.take(this.shared, 1, nowNs)
      if (shares !== this.#shares) this.#divide(shares)
    }
    return takeTokens(this.#words, 0, this.#size, 1, nowNs)
  }

  /** Requests that may start now by the bucket of this gateway. */
  left(nowNs: bigint): number {
    return tokensLeft(Atomics.load(this.#words, 0), this.#size, nowNs)
  }

  #divide(shares: number): void {
    const share = this.perSecond / shares
    this.#size = bucketPerSecond(share, Math.max(1, Math.ceil(share * ALONE_BURST)))
    this.#shares = shares
  }
}
