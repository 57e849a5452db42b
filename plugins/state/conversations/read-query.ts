/** The query of a listing: how many, in which order, after what, and what to include. @source OpenAI API reference, Responses */
import type { PageOptions } from '#kernel'
import { conversationErrors, shown } from './errors.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 100

const INCLUDABLE = new Set([
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'message.output_text.logprobs',
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
])

/** @throws invalid_value */
export function readPageOptions(query: URLSearchParams): PageOptions {
  const order = query.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalid('order', '`asc` or `desc`')
  const after = query.get('after')
  return { order, limit: readLimit(query.get('limit')), ...(after !== null && { after }) }
}

/** Repeated, with brackets, or joined by commas: clients do all three. @throws invalid_value */
export function readInclude(query: URLSearchParams): ReadonlySet<string> {
  const given = [...query.getAll('include'), ...query.getAll('include[]')].flatMap((value) =>
    value.split(','),
  )
  const include = new Set(given.filter((value) => value !== ''))
  for (const value of include) {
    if (!INCLUDABLE.has(value)) throw invalid('include', `made of known values, which ${shown(value)} is not`)
  }
  return include
}

function readLimit(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > MAX_LIMIT) throw invalid('limit', `a whole number from 1 to ${MAX_LIMIT}`)
  return limit
}

function invalid(param: string, wanted: string) {
  return conversationErrors.invalid_value.with({ param }, param, wanted)
}
