/** The stocks of shared limits on one thread: takes tokens, and asks control for more when a stock is empty. @hot */
import { CoalescedWork } from '#shared'
import { type AllowanceMemory, ASK } from './allowance-memory.ts'
import type { BucketFacts, SharedBucket } from './shared-bucket.ts'

/** Tokens that requests of a thread wait for. */
export interface TokenNeed {
  readonly bucket: BucketFacts
  tokens: number
}

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

  /** @returns 0 if taken; milliseconds until more may be granted; ASK if control must be asked with `wait` */
  take(bucket: SharedBucket, tokens: number, nowMs: number): number {
    const row = this.#rowOf(bucket)
    if (row >= 0) return this.#memory.take(row, tokens, nowMs)
    return tokens === 0 ? 0 : ASK
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
