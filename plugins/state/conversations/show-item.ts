/** Items as clients see them: without internal ones, and without members that were not requested. */
import type { ConversationHistory, ConversationItem, ItemPage, ItemProblem, PageOptions } from '#kernel'
import { isShown, withoutPrivate } from '#shared'

type Json = Readonly<Record<string, unknown>>

/** Reads on behind items that clients do not see, until the page is full. */
export async function visiblePage(
  conversations: ConversationHistory,
  tenant: string,
  id: string,
  options: PageOptions,
): Promise<ItemPage | ItemProblem> {
  // One more than requested, to detect whether there are more.
  const limit = options.limit + 1
  const items: ConversationItem[] = []
  let { after } = options
  for (;;) {
    const page = await conversations.page(tenant, id, { ...options, limit, after })
    if (page.problem !== undefined) return page
    for (const item of visible(page.items)) items.push(item)
    after = page.items.at(-1)?.item.id
    // A page is shorter than its limit when its items are very large: then it ends here.
    const isCut = page.hasMore && page.items.length < limit && items.length > 0
    if (items.length >= limit || !page.hasMore || isCut || after === undefined)
      return { items: items.slice(0, options.limit), hasMore: isCut || items.length >= limit }
  }
}

export function visible(items: readonly ConversationItem[]): ConversationItem[] {
  return items.filter(({ item }) => isShown(item))
}

/** The body of every listing. @param items that clients see */
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

export function showItem({ item, createdAtSec }: ConversationItem, include: ReadonlySet<string>): Json {
  return { ...filterItem(withoutPrivate(item), include), created_at: createdAtSec }
}

function filterItem(item: Json, include: ReadonlySet<string>): Json {
  switch (item.type) {
    case 'message':
      return include.has('message.output_text.logprobs') ? item : withoutLogprobs(item)
    case 'reasoning':
      return include.has('reasoning.encrypted_content') ? item : without(item, 'encrypted_content')
    case 'code_interpreter_call':
      return include.has('code_interpreter_call.outputs') ? item : { ...item, outputs: null }
    case 'file_search_call':
      return include.has('file_search_call.results') ? item : { ...item, results: null }
    case 'web_search_call': {
      const shown = include.has('web_search_call.results') ? item : without(item, 'results')
      const { action } = item
      if (include.has('web_search_call.action.sources') || typeof action !== 'object') return shown
      return action === null ? shown : { ...shown, action: without(action as Json, 'sources') }
    }
    default:
      return item
  }
}

function withoutLogprobs(item: Json): Json {
  if (!Array.isArray(item.content)) return item
  const content = (item.content as Json[]).map((part) =>
    part.type === 'output_text' ? { ...part, logprobs: [] } : part,
  )
  return { ...item, content }
}

function without(object: Json, member: string): Json {
  const { [member]: _, ...rest } = object
  return rest
}
