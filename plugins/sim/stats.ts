/** What the engine counts about its work, and the load that it reports. */
import type { Batch, BatchLoad } from './batch.ts'

/** Shorter spans give no steady rate. */
const RATE_SPAN_MS = 1000

/** Limits that an engine reports which has none. */
const REPORTED = { maxRunning: 256, kvTokens: 524_288 }

/** The load of an engine at one moment. */
export interface EngineLoad extends BatchLoad {
  readonly maxRunning: number
  readonly kvTokens: number
  /** Tokens generated per second. */
  readonly tokensPerSec: number
}

export class EngineStats {
  /** Serving requests under way. */
  running = 0
  total = 0
  /** Serving requests whose client left, or whose connection a fault closed. */
  aborted = 0
  promptTokens = 0
  generatedTokens = 0
  /** Tokens of prompts and answers under way. */
  usedTokens = 0
  readonly #batch: Batch | null
  #tokensPerSec = 0
  #rateSince = { atMs: performance.now(), tokens: 0 }

  constructor(batch: Batch | null = null) {
    this.#batch = batch
  }

  /** Without a batch nothing waits, nothing is kept, and every request under way counts as running. */
  load(): EngineLoad {
    const tokensPerSec = this.tokensPerSec()
    if (this.#batch !== null) {
      const { maxRunning, kvTokens } = this.#batch
      return { ...this.#batch.load(), maxRunning, kvTokens, tokensPerSec }
    }
    const { running, usedTokens } = this
    const nothing = { waiting: 0, waitingUncachedTokens: 0, cachedTokens: 0, hitRate: 0 }
    return { ...REPORTED, ...nothing, running, usedTokens, tokensPerSec }
  }

  /** Tokens generated per second, measured from one question to the next, at least a second apart. */
  tokensPerSec(): number {
    const elapsedMs = performance.now() - this.#rateSince.atMs
    if (elapsedMs < RATE_SPAN_MS) return this.#tokensPerSec
    this.#tokensPerSec = ((this.generatedTokens - this.#rateSince.tokens) * 1000) / elapsedMs
    this.#rateSince = { atMs: performance.now(), tokens: this.generatedTokens }
    return this.#tokensPerSec
  }

  toJSON() {
    return {
      running: this.running,
      total: this.total,
      aborted: this.aborted,
      prompt_tokens: this.promptTokens,
      generated_tokens: this.generatedTokens,
      ...this.#batch?.toJSON(),
    }
  }
}
