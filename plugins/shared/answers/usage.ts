/** Token counts and log probabilities that workers report; nothing about their types is certain. */
import { type GenerationUsage, isObject, type TokenLogprob } from '#kernel'

/** @param otherwise for a value that is no count */
export function tokenCount(value: unknown, otherwise = 0): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? Math.floor(value) : otherwise
}

/** Sums the counters; null counts as zero. */
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

/** @param list entries of the formats of OpenAI, each with its alternatives in `top_logprobs` */
export function readLogprobs(list: readonly unknown[]): TokenLogprob[] {
  return list.filter(isObject).map((entry) => {
    const top = Array.isArray(entry.top_logprobs) ? entry.top_logprobs.filter(isObject).map(toLogprob) : []
    return { ...toLogprob(entry), top }
  })
}

export function toLogprob({ token, logprob, bytes }: Readonly<Record<string, unknown>>) {
  return {
    token: typeof token === 'string' ? token : '',
    logprob: typeof logprob === 'number' ? logprob : 0,
    bytes: Array.isArray(bytes) ? (bytes as number[]) : null,
  }
}
