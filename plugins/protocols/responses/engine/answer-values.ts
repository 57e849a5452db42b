/** Values of a worker's response: log probabilities and usage, of which nothing is certain. */
import { type GenerationUsage, isObject, type TokenLogprob } from '#kernel'
import type { Json } from '../json.ts'

export function textsOf(parts: unknown): unknown[] {
  return Array.isArray(parts) ? parts.map((part: unknown) => (isObject(part) ? part.text : '')) : []
}

export function readLogprobs(list: unknown): readonly TokenLogprob[] | null {
  if (!Array.isArray(list) || list.length === 0) return null
  return list.filter(isObject).map((one) => {
    const { token, logprob, bytes } = toLogprob(one)
    const top = Array.isArray(one.top_logprobs) ? one.top_logprobs.filter(isObject).map(toLogprob) : []
    return { token, logprob, bytes, top }
  })
}

function toLogprob({ token, logprob, bytes }: Json) {
  return {
    token: String(token ?? ''),
    logprob: typeof logprob === 'number' ? logprob : 0,
    bytes: Array.isArray(bytes) ? (bytes as number[]) : null,
  }
}

export function readUsage(usage: unknown): GenerationUsage | null {
  if (!isObject(usage)) return null
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  return {
    inputTokens: countOf(usage.input_tokens),
    cachedTokens: countOf(input.cached_tokens),
    cacheWriteTokens: countOf(input.cache_write_tokens),
    outputTokens: countOf(usage.output_tokens),
    reasoningTokens: countOf(output.reasoning_tokens),
  }
}

function countOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? Math.floor(value) : 0
}
