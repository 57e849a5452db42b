/** Tokens in the words of the format, where what a cache gave or took is no part of the input. @source Anthropic API reference, Messages */
import type { GenerationUsage } from '#kernel'

export interface WireUsage {
  readonly input_tokens: number
  readonly cache_creation_input_tokens: number
  readonly cache_read_input_tokens: number
  readonly output_tokens: number
  readonly output_tokens_details?: { readonly thinking_tokens: number }
}

export function toUsage(usage: GenerationUsage): WireUsage {
  const { inputTokens, cachedTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage
  return {
    input_tokens: Math.max(0, inputTokens - cachedTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    output_tokens: outputTokens,
    ...(reasoningTokens > 0 && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
  }
}

/** Of an answer whose worker has not told: what was counted or estimated here. */
export function estimatedUsage(inputTokens: number, outputCharacters: number): WireUsage {
  return {
    input_tokens: inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: Math.ceil(outputCharacters / CHARACTERS_PER_TOKEN),
  }
}

export const CHARACTERS_PER_TOKEN = 4
