/** A limit of all gateways, as one thread sees it. */
import { type BucketKey, bucketKey } from '../rates/bucket-table.ts'

/** Names of the buckets of whole gateways. */
export const GLOBAL_BUCKET = 'global'
export const RATE_BUCKET = 'requests-per-second'
/** Cells of shared memory are 32 bits wide. */
const MAX_LIMIT = 1_000_000_000

/** What control must know to ask for tokens. */
export interface BucketFacts {
  /** The same on every gateway. */
  readonly name: string
  readonly low: number
  readonly high: number
  /** Tokens per window. */
  readonly limit: number
  readonly windowMs: number
}

export class SharedBucket {
  readonly facts: BucketFacts
  /** Row in the memory of stocks; -1 if unknown. */
  row = -1

  /** @param limit tokens per window */
  constructor(key: BucketKey, limit: number, windowMs: number) {
    this.facts = {
      name: BigInt.asUintN(64, key).toString(16),
      low: Number(BigInt.asIntN(32, key)),
      high: Number(BigInt.asIntN(32, key >> 32n)),
      limit,
      windowMs,
    }
  }
}

/** Tokens of a shared limit that are not in stock: ask control for them and try again. */
export class TokenShortage {
  readonly bucket: SharedBucket
  readonly tokens: number

  constructor(bucket: SharedBucket, tokens: number) {
    this.bucket = bucket
    this.tokens = tokens
  }
}

/** The bucket of a rate that may be fractional: whole requests per window. */
export function rateBucket(name: string, perSecond: number): SharedBucket {
  const limit = Math.min(MAX_LIMIT, Math.max(1, Math.floor(perSecond)))
  return new SharedBucket(bucketKey(name), limit, Math.ceil((limit * 1_000) / perSecond))
}
