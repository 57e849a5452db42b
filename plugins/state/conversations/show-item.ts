/** An item as clients see it: kept whole, shown without what they did not ask to be included. */
import type { ConversationItem } from '#kernel'
import { withoutPrivate } from '#shared'

type Json = Record<string, unknown>

export function showItem({ item, createdAtSec }: ConversationItem, include: ReadonlySet<string>): Json {
  return { ...filterItem(withoutPrivate(item), include), created_at: createdAtSec }
}

/** The list of items that every listing answers with. @param items that clients see */
export function showList(
  items: readonly ConversationItem[],
  hasMore: boolean,
  include: ReadonlySet<string>,
): Json {
  return {
    object: 'list',
    data: items.map((item) => showItem(item, include)),
    first_id: items.at(0)?.item.id ?? null,
    last_id: items.at(-1)?.item.id ?? null,
    has_more: hasMore,
  }
}

function filterItem(item: Readonly<Json>, include: ReadonlySet<string>): Json {
  switch (item.type) {
    case 'message':
      return include.has('message.output_text.logprobs') ? { ...item } : withoutLogprobs(item)
    case 'reasoning':
      return include.has('reasoning.encrypted_content') ? { ...item } : without(item, 'encrypted_content')
    case 'code_interpreter_call':
      return include.has('code_interpreter_call.outputs') ? { ...item } : { ...item, outputs: null }
    case 'file_search_call':
      return include.has('file_search_call.results') ? { ...item } : { ...item, results: null }
    case 'web_search_call':
      return filterSearch(item, include)
    default:
      return { ...item }
  }
}

function filterSearch(item: Readonly<Json>, include: ReadonlySet<string>): Json {
  const shown = include.has('web_search_call.results') ? { ...item } : without(item, 'results')
  const { action } = item
  if (include.has('web_search_call.action.sources') || !isObject(action)) return shown
  return { ...shown, action: without(action, 'sources') }
}

function withoutLogprobs(item: Readonly<Json>): Json {
  if (!Array.isArray(item.content)) return { ...item }
  const content = item.content.map((part: unknown) =>
    isObject(part) && part.type === 'output_text' ? { ...part, logprobs: [] } : part,
  )
  return { ...item, content }
}

function without(object: Readonly<Json>, member: string): Json {
  const { [member]: _, ...rest } = object
  return rest
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
