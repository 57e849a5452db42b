/** Values of a worker's response: texts and usage, of which nothing is certain. */
import { type GenerationUsage, isObject } from '#kernel'
import { tokenCount } from '#shared'

export function textsOf(parts: unknown): unknown[] {
  return Array.isArray(parts) ? parts.map((part: unknown) => (isObject(part) ? part.text : '')) : []
}

export function readUsage(usage: unknown): GenerationUsage | null {
  if (!isObject(usage)) return null
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  return {
    inputTokens: tokenCount(usage.input_tokens),
    cachedTokens: tokenCount(input.cached_tokens),
    cacheWriteTokens: tokenCount(input.cache_write_tokens),
    outputTokens: tokenCount(usage.output_tokens),
    reasoningTokens: tokenCount(output.reasoning_tokens),
  }
}
