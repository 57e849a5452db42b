/** What a worker says of tokens, in one place or in several: later figures take the place of earlier ones. */
import type { GenerationUsage } from '#kernel'

export class AnswerUsage {
  #isTold = false
  #input = 0
  #cached = 0
  #written = 0
  #output = 0
  #thinking = 0

  add(usage: unknown): void {
    if (typeof usage !== 'object' || usage === null) return
    const told = usage as Record<string, unknown>
    this.#isTold = true
    this.#input = countOf(told.input_tokens, this.#input)
    this.#cached = countOf(told.cache_read_input_tokens, this.#cached)
    this.#written = countOf(told.cache_creation_input_tokens, this.#written)
    this.#output = countOf(told.output_tokens, this.#output)
    const { output_tokens_details: details } = told
    if (typeof details === 'object' && details !== null)
      this.#thinking = countOf((details as Record<string, unknown>).thinking_tokens, this.#thinking)
  }

  /** Of the whole prompt, caches included; null when nothing was told. */
  get inputTokens(): number | null {
    return this.#isTold ? this.#input + this.#cached + this.#written : null
  }

  toUsage(): GenerationUsage | null {
    const { inputTokens } = this
    if (inputTokens === null) return null
    return {
      inputTokens,
      cachedTokens: this.#cached,
      cacheWriteTokens: this.#written,
      outputTokens: this.#output,
      reasoningTokens: this.#thinking,
    }
  }
}

function countOf(value: unknown, before: number): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? Math.floor(value) : before
}
