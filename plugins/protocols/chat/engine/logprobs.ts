/** Log probabilities of a chat or completions choice in the internal form. */
import type { TokenLogprob } from '#kernel'
import { isObject } from './chat-chunk.ts'

/** Null when nothing can be read. */
export function readLogprobs(logprobs: unknown): TokenLogprob[] | null {
  if (!isObject(logprobs)) return null
  if (Array.isArray(logprobs.content)) return logprobs.content.filter(isObject).map(toToken)
  if (Array.isArray(logprobs.tokens)) return ofCompletion(logprobs)
  return null
}

function toToken(entry: Record<string, unknown>): TokenLogprob {
  const top = Array.isArray(entry.top_logprobs) ? entry.top_logprobs.filter(isObject).map(toAlternative) : []
  return { ...toAlternative(entry), top }
}

function toAlternative({ token, logprob, bytes }: Record<string, unknown>) {
  return {
    token: typeof token === 'string' ? token : '',
    logprob: typeof logprob === 'number' ? logprob : 0,
    bytes: Array.isArray(bytes) ? (bytes as number[]) : null,
  }
}

function ofCompletion(logprobs: Record<string, unknown>): TokenLogprob[] {
  const tokens = logprobs.tokens as unknown[]
  const values = Array.isArray(logprobs.token_logprobs) ? logprobs.token_logprobs : []
  const tops = Array.isArray(logprobs.top_logprobs) ? logprobs.top_logprobs : []
  return tokens.map((token, at) => ({
    ...toAlternative({ token, logprob: values[at] as unknown }),
    top: isObject(tops[at])
      ? Object.entries(tops[at]).map(([text, logprob]) => toAlternative({ token: text, logprob }))
      : [],
  }))
}
