/** Adds up what the generations of one turn used. */
import type { GenerationUsage } from '#kernel'

/** Null and something is something. */
export function addUsage(sum: GenerationUsage | null, more: GenerationUsage | null): GenerationUsage | null {
  if (sum === null || more === null) return sum ?? more
  return {
    inputTokens: sum.inputTokens + more.inputTokens,
    cachedTokens: sum.cachedTokens + more.cachedTokens,
    cacheWriteTokens: sum.cacheWriteTokens + more.cacheWriteTokens,
    outputTokens: sum.outputTokens + more.outputTokens,
    reasoningTokens: sum.reasoningTokens + more.reasoningTokens,
  }
}
