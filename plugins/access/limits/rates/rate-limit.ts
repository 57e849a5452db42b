/** A limit of requests per second: of this gateway, or shared with other gateways. @hot */
import { type Allowance, rateBucket, type SharedBucket, type TokenShortage } from '../allowance/allowance.ts'
import { type BucketSize, bucketPerSecond, takeTokens } from './token-bucket.ts'

/** Share of a second's requests that a gateway without its engine admits at once. */
const ALONE_BURST = 0.1

export interface RateLimit {
  readonly perSecond: number
  /** Takes one request. @returns 0 if taken, nanoseconds to wait, or the tokens to ask for */
  take(nowNs: bigint): bigint | TokenShortage
}

export class OwnRate implements RateLimit {
  readonly perSecond: number
  readonly size: BucketSize
  readonly #words: BigInt64Array

  /** @param burst 0 for the requests of one second */
  constructor(words: BigInt64Array, perSecond: number, burst: number) {
    this.#words = words
    this.perSecond = perSecond
    this.size = bucketPerSecond(perSecond, burst > 0 ? burst : Math.max(1, Math.ceil(perSecond)))
  }

  take(nowNs: bigint): bigint {
    return takeTokens(this.#words, 0, this.size, 1, nowNs)
  }
}

export class SharedRate implements RateLimit {
  readonly perSecond: number
  readonly bucket: SharedBucket
  readonly #allowance: Allowance
  /** For the time without the engine. */
  readonly #words: BigInt64Array
  #shares = 0
  #alone: BucketSize | null = null

  /** @param name of the bucket, the same on every gateway */
  constructor(allowance: Allowance, words: BigInt64Array, name: string, perSecond: number) {
    this.#allowance = allowance
    this.#words = words
    this.perSecond = perSecond
    this.bucket = rateBucket(name, perSecond)
  }

  take(nowNs: bigint): bigint | TokenShortage {
    const { shares } = this.#allowance
    if (shares > 0) return takeTokens(this.#words, 0, this.#aloneSize(shares), 1, nowNs)
    return this.#allowance.take(this.bucket, 1, nowNs)
  }

  #aloneSize(shares: number): BucketSize {
    if (this.#alone === null || this.#shares !== shares) {
      const share = this.perSecond / shares
      this.#alone = bucketPerSecond(share, Math.max(1, Math.ceil(share * ALONE_BURST)))
      this.#shares = shares
    }
    return this.#alone
  }
}
