/** What the engine counts about its work. */

/** Shorter spans give no steady rate. */
const RATE_SPAN_MS = 1000

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
  #tokensPerSec = 0
  #rateSince = { atMs: performance.now(), tokens: 0 }

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
    }
  }
}
