/** Reads the responses of rerank workers: a bare list of scores, or the object of vLLM, Jina and Cohere around one. */
import { isObject, type JsonObject, type Static, type WorkerResponse } from '#kernel'
import { chatErrors } from '../../errors.ts'
import type { RerankResponse } from '../../wire/rerank.ts'

interface RankedDocument {
  readonly score: number
  readonly index: number
  readonly document: string | undefined
}

export interface Ranking {
  /** In the worker's order: best first. */
  readonly results: readonly RankedDocument[]
  readonly usage: Static<typeof RerankResponse>['usage']
}

/** @throws rerank_response_build_failed (500) */
export function readRanking(reply: WorkerResponse): Ranking {
  const answer = readJson(reply)
  const list = Array.isArray(answer) ? answer : objectOf(answer)?.results
  if (!Array.isArray(list))
    throw chatErrors.rerank_response_build_failed('it must be a list, or hold one as results')
  const results = list.map(toRanked)
  const usage = Array.isArray(answer) ? usageOfParts(list) : usageOf(objectOf(answer) ?? {})
  return { results, usage }
}

function readJson(reply: WorkerResponse): unknown {
  try {
    return reply.json()
  } catch (cause) {
    throw chatErrors.rerank_response_build_failed.with({ cause }, 'not JSON')
  }
}

function toRanked(entry: unknown, place: number): RankedDocument {
  const { score, relevance_score, index, document } = objectOf(entry) ?? {}
  const value = score ?? relevance_score
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw chatErrors.rerank_response_build_failed(`entry ${place} has no score`)
  if (!Number.isInteger(index) || (index as number) < 0)
    throw chatErrors.rerank_response_build_failed(`entry ${place} has no index`)
  return { score: value, index: index as number, document: textOf(document) }
}

/** The text itself, or an object that holds it. */
function textOf(document: unknown): string | undefined {
  const text = typeof document === 'string' ? document : objectOf(document)?.text
  return typeof text === 'string' ? text : undefined
}

/** vLLM and Jina count in `usage`, Cohere in `meta`. */
function usageOf({ usage, meta }: JsonObject): Ranking['usage'] {
  const counts = objectOf(usage) ?? {}
  const tokens = objectOf(objectOf(meta)?.tokens) ?? {}
  const prompt = countOf(counts.prompt_tokens) ?? countOf(tokens.input_tokens)
  const total = countOf(counts.total_tokens)
  return { prompt_tokens: prompt ?? total ?? 0, total_tokens: total ?? prompt ?? 0 }
}

/** Bare lists count entry by entry. */
function usageOfParts(list: readonly unknown[]): Ranking['usage'] {
  const counts = list.map((entry) => countOf(objectOf(objectOf(entry)?.meta_info)?.prompt_tokens) ?? 0)
  const total = counts.reduce((sum, count) => sum + count, 0)
  return { prompt_tokens: total, total_tokens: total }
}

function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}

function objectOf(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined
}
