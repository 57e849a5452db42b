/** Limits that gateways share, on one thread: takes tokens from stocks, and asks control for more when one is empty. @hot */
import { defineCommand, defineReplica } from '#kernel'
import { CoalescedWork } from '#shared'
import { type BucketKey, bucketKey } from '../rates/bucket-table.ts'
import { MS_NS } from '../rates/token-bucket.ts'
import { type AllowanceMemory, ASK } from './allowance-memory.ts'

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

/** Tokens that requests of a thread wait for. */
export interface TokenNeed {
  readonly bucket: BucketFacts
  tokens: number
}

/** Which limits are taken from grants. */
export interface LimitSharing {
  /** Limit of `/ha/rate-limit`; null without one. */
  readonly globalPerSecond: number | null
  /** Tenant limits and `requestsPerSecond` are those of all gateways together. */
  readonly isShared: boolean
}

export const LimitSharingReplica = defineReplica<LimitSharing>('limits.sharing', {
  globalPerSecond: null,
  isShared: false,
})
/** Resolves when the engine has been asked, or is known to be away. */
export const AskTokens = defineCommand<readonly TokenNeed[], void>('limits.ask-tokens')
/** Tokens left over all gateways; null while the engine is away. */
export const ReadTokens = defineCommand<readonly BucketFacts[], readonly number[] | null>(
  'limits.read-tokens',
)

export class Allowance {
  readonly #memory: AllowanceMemory
  readonly #askControl: (needs: readonly TokenNeed[]) => Promise<void>
  #needs = new Map<string, TokenNeed>()
  readonly #asking = new CoalescedWork(() => this.#ask())

  /** @param askControl resolves when the stocks have what control could get */
  constructor(memory: AllowanceMemory, askControl: (needs: readonly TokenNeed[]) => Promise<void>) {
    this.#memory = memory
    this.#askControl = askControl
  }

  /** Parts into which limits are divided while the engine is away; 0 while tokens are granted. */
  get shares(): number {
    return this.#memory.shares
  }

  /** @returns 0 if taken; nanoseconds until more may be granted; the tokens to ask control for with `wait` */
  take(bucket: SharedBucket, tokens: number, nowNs: bigint): bigint | TokenShortage {
    const row = this.#rowOf(bucket)
    if (row < 0) return tokens === 0 ? 0n : new TokenShortage(bucket, tokens)
    const waitMs = this.#memory.take(row, tokens, Number(nowNs / MS_NS))
    if (waitMs === 0) return 0n
    return waitMs === ASK ? new TokenShortage(bucket, tokens) : BigInt(waitMs) * MS_NS
  }

  /** Takes tokens unconditionally. */
  charge(bucket: SharedBucket, tokens: number): void {
    const row = this.#rowOf(bucket)
    if (row >= 0) this.#memory.charge(row, tokens)
    // A bucket that was not used for a while has no stock: control makes one.
    else void this.wait(bucket, tokens).then(() => this.#chargeRow(bucket, tokens))
  }

  /** @param window of the tokens; they are lost if it is over */
  putBack(bucket: SharedBucket, tokens: number, window: number): void {
    const row = this.#rowOf(bucket)
    if (row >= 0) this.#memory.putBack(row, tokens, window)
  }

  /** Window of the stock; 0 without one. */
  window(bucket: SharedBucket): number {
    const row = this.#rowOf(bucket)
    return row < 0 ? 0 : this.#memory.window(row)
  }

  /** Resolves when control has asked the engine. Needs of the meantime form the next question. */
  wait({ facts }: SharedBucket, tokens: number): Promise<void> {
    const known = this.#needs.get(facts.name)
    if (known === undefined) this.#needs.set(facts.name, { bucket: facts, tokens })
    else known.tokens += tokens
    return this.#asking.run()
  }

  #chargeRow(bucket: SharedBucket, tokens: number): void {
    const row = this.#rowOf(bucket)
    if (row >= 0) this.#memory.charge(row, tokens)
  }

  async #ask(): Promise<void> {
    const needs = [...this.#needs.values()]
    this.#needs = new Map()
    await this.#askControl(needs).catch(() => undefined)
  }

  #rowOf(bucket: SharedBucket): number {
    const { low, high } = bucket.facts
    if (bucket.row < 0 || !this.#memory.holds(bucket.row, low, high))
      bucket.row = this.#memory.find(low, high)
    return bucket.row
  }
}
