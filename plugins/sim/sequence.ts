/** One request in a batched engine: its progress and its cache blocks. */
import type { KvCache } from './kv-cache.ts'

/** Size of a request. */
export interface BatchJob {
  readonly promptTokens: number
  /** Hashes of the full blocks of the prompt. */
  readonly blocks: readonly number[]
  /** Tokens of all answers, which need room in the cache. */
  readonly outputTokens: number
  /** Tokens of the longest answer; 0 for prompt-only requests. */
  readonly steps: number
}

/** Receives the progress of a request, from the engine's timer except for `onAdmit`. */
export interface BatchListener {
  /** It left the queue, with this many cached prompt tokens. May be called before `submit` returns. */
  onAdmit(cachedTokens: number): void
  /** Token `index` of the answer is available, 0-based. */
  onToken(index: number): void
  onEnd(): void
}

export class Sequence {
  readonly job: BatchJob
  readonly listener: BatchListener
  state: 'waiting' | 'prefill' | 'decode' | 'over' = 'waiting'
  /** Computed or cached prompt tokens. */
  prefilled = 0
  produced = 0
  readonly #kv: KvCache
  readonly #blockTokens: number
  /** Hashes of its shared blocks: cache hits, then its own. */
  readonly #shared: number[] = []
  #privateBlocks = 0
  /** Computed prompt blocks that were offered for sharing. */
  #published = 0

  constructor(job: BatchJob, listener: BatchListener, kv: KvCache, blockTokens: number) {
    this.job = job
    this.listener = listener
    this.#kv = kv
    this.#blockTokens = blockTokens
  }

  /** Blocks that prompt and answers need. */
  get blocksNeeded(): number {
    return Math.max(1, Math.ceil((this.job.promptTokens + this.job.outputTokens) / this.#blockTokens))
  }

  get isPrefilled(): boolean {
    return this.prefilled >= this.job.promptTokens
  }

  /** At least one prompt token is always computed, since it yields the first output token. */
  cachedTokens(): number {
    const { blocks, promptTokens } = this.job
    const limit = Math.floor(Math.max(0, promptTokens - 1) / this.#blockTokens)
    return this.#kv.match(blocks, limit) * this.#blockTokens
  }

  /** Allocates its cache blocks, reusing cached ones. @returns false if there is no room */
  claim(): boolean {
    const cachedTokens = this.cachedTokens()
    const hits = cachedTokens / this.#blockTokens
    const fresh = this.blocksNeeded - hits
    if (!this.#kv.claim(this.job.blocks, hits, fresh)) return false
    for (const block of this.job.blocks.slice(0, hits)) this.#shared.push(block)
    this.#privateBlocks = fresh
    this.#published = hits
    this.prefilled = cachedTokens
    return true
  }

  /** Records computed prompt tokens and shares their blocks. */
  prefill(tokens: number): void {
    const { blocks } = this.job
    this.prefilled += tokens
    const full = Math.min(blocks.length, Math.floor(this.prefilled / this.#blockTokens))
    for (; this.#published < full; this.#published += 1) {
      const name = blocks[this.#published]
      // Another request has shared the same block: this copy stays private.
      if (!this.#kv.publish(name)) continue
      this.#shared.push(name)
      this.#privateBlocks -= 1
    }
  }

  release(): void {
    this.#kv.release(this.#shared, this.#privateBlocks)
  }
}
