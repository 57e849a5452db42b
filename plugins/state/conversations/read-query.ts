/** Query parameters of a listing: limit, order, cursor and include. @source OpenAI API reference, Responses */
import type { PageOptions } from '#kernel'
import { includeNames, isInclude } from '#shared'
import { conversationErrors, shown } from './errors.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 100

/** @throws invalid_value */
export function readPageOptions(query: URLSearchParams): PageOptions {
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalid('order', 'must be `asc` or `desc`')
  const after = query.get('after')
  return { order, limit: readLimit(query.get('limit')), ...(after !== null && { after }) }
}

/** @throws invalid_value */
export function readInclude(query: URLSearchParams): ReadonlySet<string> {
  const names = includeNames(query)
  for (const name of names) if (!isInclude(name)) throw invalid('include', `must not hold ${shown(name)}`)
  return new Set(names)
}

function readLimit(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > MAX_LIMIT) throw invalid('limit', `must be an integer from 1 to ${MAX_LIMIT}`)
  return limit
}

function invalid(param: string, problem: string) {
  return conversationErrors.invalid_value.with({ param }, param, problem)
}
