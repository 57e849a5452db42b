/**
 * Continuous batching of serving engines in simulated time: requests wait in one queue, join the batch when there is room,
 * have their prompt computed in chunks, and then get one token per decode step. Prefill and decode steps alternate while
 * both have work. One timer serves the whole engine.
 */
import type { EngineConfig } from './config.ts'
import { simErrors } from './errors.ts'
import { KvCache } from './kv-cache.ts'
import { type BatchJob, type BatchListener, Sequence } from './sequence.ts'

export interface BatchClock {
  nowMs(): number
  /** @returns cancels the timer */
  after(delayMs: number, work: () => void): () => void
}

export interface BatchLoad {
  readonly running: number
  readonly waiting: number
  /** Prompt tokens of waiting requests that are not in the cache. */
  readonly waitingUncachedTokens: number
  readonly usedTokens: number
  readonly cachedTokens: number
  readonly hitRate: number
}

export type BatchHandle = { cancel(): void }

const systemClock: BatchClock = {
  nowMs: () => performance.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs)
    return () => clearTimeout(timer)
  },
}

/** Steps missed by a longer pause of the process are skipped. */
const LONGEST_LAG_MS = 1000

interface Step {
  readonly kind: 'prefill' | 'decode'
  readonly endsAtMs: number
  /** Prompt tokens computed for each sequence in a prefill step. */
  readonly shares: readonly { readonly sequence: Sequence; readonly tokens: number }[]
}

export class Batch {
  readonly kv: KvCache
  readonly #config: EngineConfig
  readonly #clock: BatchClock
  readonly #waiting = new Set<Sequence>()
  readonly #prefilling = new Set<Sequence>()
  readonly #decoding = new Set<Sequence>()
  #step: Step | null = null
  #lastKind: Step['kind'] = 'decode'
  #isArmed = false
  #promptTokens = 0
  #hitTokens = 0

  constructor(config: EngineConfig, clock: BatchClock = systemClock) {
    this.#config = config
    this.#clock = clock
    this.kv = new KvCache(Math.max(1, Math.floor(config.kvTokens / config.blockTokens)))
  }

  get running(): number {
    return this.#prefilling.size + this.#decoding.size
  }

  get maxRunning(): number {
    return this.#config.maxRunning
  }

  /** Capacity of the cache, tokens. */
  get kvTokens(): number {
    return this.kv.capacity * this.#config.blockTokens
  }

  /** Prompt tokens of all requests that left the queue, and those of them that were in the cache. */
  toJSON() {
    return {
      waiting: this.#waiting.size,
      admitted_prompt_tokens: this.#promptTokens,
      cached_prompt_tokens: this.#hitTokens,
      kv_used_blocks: this.kv.used,
      kv_idle_blocks: this.kv.idle,
      kv_evictions: this.kv.evictions,
    }
  }

  load(): BatchLoad {
    const { blockTokens } = this.#config
    let waitingUncachedTokens = 0
    for (const sequence of this.#waiting) {
      waitingUncachedTokens += sequence.job.promptTokens - sequence.cachedTokens()
    }
    return {
      running: this.running,
      waiting: this.#waiting.size,
      waitingUncachedTokens,
      usedTokens: this.kv.used * blockTokens,
      cachedTokens: this.kv.idle * blockTokens,
      hitRate: this.#promptTokens === 0 ? 0 : this.#hitTokens / this.#promptTokens,
    }
  }

  /**
   * @throws request_exceeds_cache (400) if even an empty cache could not hold it
   * @throws engine_queue_full (503)
   */
  submit(job: BatchJob, listener: BatchListener): BatchHandle {
    const { maxWaiting, blockTokens } = this.#config
    const sequence = new Sequence(job, listener, this.kv, blockTokens)
    if (sequence.blocksNeeded > this.kv.capacity) {
      throw simErrors.request_exceeds_cache(job.promptTokens + job.outputTokens, this.kvTokens)
    }
    if (this.#waiting.size >= maxWaiting) throw simErrors.engine_queue_full(maxWaiting)
    this.#waiting.add(sequence)
    if (this.#step === null) {
      this.#begin(this.#clock.nowMs())
      this.#arm()
    }
    return { cancel: () => this.#end(sequence) }
  }

  /** Finishes all due steps. A late timer delays the output of tokens, not their computation. */
  #advance(): void {
    const nowMs = this.#clock.nowMs()
    while (this.#step !== null && this.#step.endsAtMs <= nowMs) {
      const { endsAtMs } = this.#step
      this.#finish(this.#step)
      this.#begin(Math.max(endsAtMs, nowMs - LONGEST_LAG_MS))
    }
    this.#arm()
  }

  #arm(): void {
    if (this.#step === null || this.#isArmed) return
    this.#isArmed = true
    this.#clock.after(Math.ceil(Math.max(0, this.#step.endsAtMs - this.#clock.nowMs())), () => {
      this.#isArmed = false
      this.#advance()
    })
  }

  #begin(atMs: number): void {
    this.#admit()
    const mayPrefill = this.#prefilling.size > 0
    const mayDecode = this.#decoding.size > 0
    if (mayPrefill && (!mayDecode || this.#lastKind === 'decode')) this.#step = this.#planPrefill(atMs)
    else if (mayDecode) this.#step = this.#planDecode(atMs)
    else this.#step = null
    if (this.#step !== null) this.#lastKind = this.#step.kind
  }

  /** First come, first served: a request that does not fit blocks later ones, so that it does not starve. */
  #admit(): void {
    for (const sequence of this.#waiting) {
      if (this.running >= this.#config.maxRunning) return
      if (!sequence.claim()) return
      this.#promptTokens += sequence.job.promptTokens
      this.#hitTokens += sequence.prefilled
      this.#move(sequence, 'prefill')
      sequence.listener.onAdmit(sequence.prefilled)
    }
  }

  #planPrefill(atMs: number): Step {
    const { prefillChunkTokens, prefillTokensPerSecond } = this.#config
    let left = prefillChunkTokens
    const shares: { sequence: Sequence; tokens: number }[] = []
    for (const sequence of this.#prefilling) {
      if (left === 0) break
      const tokens = Math.min(left, sequence.job.promptTokens - sequence.prefilled)
      shares.push({ sequence, tokens })
      left -= tokens
    }
    const computed = prefillChunkTokens - left
    return { kind: 'prefill', endsAtMs: atMs + (computed / prefillTokensPerSecond) * 1000, shares }
  }

  #planDecode(atMs: number): Step {
    const { decodeBaseMs, decodePerRunningMs } = this.#config
    const tookMs = decodeBaseMs + decodePerRunningMs * this.#decoding.size
    return { kind: 'decode', endsAtMs: atMs + tookMs, shares: [] }
  }

  #finish(step: Step): void {
    if (step.kind === 'decode') for (const sequence of this.#decoding) this.#produce(sequence)
    for (const { sequence, tokens } of step.shares) {
      if (sequence.state !== 'prefill') continue
      sequence.prefill(tokens)
      if (!sequence.isPrefilled) continue
      this.#move(sequence, 'decode')
      // The last prompt token yields the first output token.
      this.#produce(sequence)
    }
  }

  #produce(sequence: Sequence): void {
    const { job, listener } = sequence
    if (sequence.produced < job.steps) {
      sequence.produced += 1
      listener.onToken(sequence.produced - 1)
    }
    if (sequence.produced < job.steps || sequence.state === 'over') return
    this.#end(sequence)
    listener.onEnd()
  }

  #end(sequence: Sequence): void {
    if (sequence.state === 'over') return
    this.#move(sequence, 'over')
    sequence.release()
  }

  #move(sequence: Sequence, state: Sequence['state']): void {
    this.#setOf(sequence.state)?.delete(sequence)
    sequence.state = state
    this.#setOf(state)?.add(sequence)
  }

  #setOf(state: Sequence['state']): Set<Sequence> | null {
    if (state === 'waiting') return this.#waiting
    if (state === 'prefill') return this.#prefilling
    return state === 'decode' ? this.#decoding : null
  }
}
