/** One request in a batched engine: how far it is, and the cache blocks that it holds. When it runs is the batch's affair. */
import type { KvCache } from './kv-cache.ts'

/** What a request asks of the engine. */
export interface BatchJob {
  readonly promptTokens: number
  /** Names of the prompt's full blocks. */
  readonly blocks: readonly number[]
  /** Tokens of all answers together: room that they take in the cache. */
  readonly outputTokens: number
  /** Tokens of the longest answer; 0 when the prompt alone is wanted. */
  readonly steps: number
}

/** Told how the request goes, always from the engine's timer but for `onAdmit`. */
export interface BatchListener {
  /** It left the queue; so many tokens of its prompt were in the cache. May come before `submit` returns. */
  onAdmit(cachedTokens: number): void
  /** Token `index` of the answer is there, 0-based. */
  onToken(index: number): void
  onEnd(): void
}

export class Sequence {
  readonly job: BatchJob
  readonly listener: BatchListener
  state: 'waiting' | 'prefill' | 'decode' | 'over' = 'waiting'
  /** Prompt tokens that need no more work. */
  prefilled = 0
  produced = 0
  readonly #kv: KvCache
  readonly #blockTokens: number
  /** Names that it holds in the cache: the hits, then its own. */
  readonly #shared: number[] = []
  #privateBlocks = 0
  /** Blocks of the prompt that are computed and were offered to others. */
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

  /** At least one token of a prompt is always computed: the first token of the answer comes from it. */
  cachedTokens(): number {
    const { blocks, promptTokens } = this.job
    const limit = Math.floor(Math.max(0, promptTokens - 1) / this.#blockTokens)
    return this.#kv.match(blocks, limit) * this.#blockTokens
  }

  /** Takes its room in the cache, with what is there of its prompt. @returns false when there is no room */
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

  /** More of the prompt is computed; from now on others may use it. */
  prefill(tokens: number): void {
    const { blocks } = this.job
    this.prefilled += tokens
    const full = Math.min(blocks.length, Math.floor(this.prefilled / this.#blockTokens))
    for (; this.#published < full; this.#published += 1) {
      const name = blocks[this.#published]
      // Somebody else computed the same meanwhile: this copy stays private.
      if (!this.#kv.publish(name)) continue
      this.#shared.push(name)
      this.#privateBlocks -= 1
    }
  }

  release(): void {
    this.#kv.release(this.#shared, this.#privateBlocks)
  }
}
