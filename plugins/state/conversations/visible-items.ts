/** Items of a conversation without those that are the gateway's alone: for clients, there are none. */
import type { ConversationItem, ItemPage, ItemProblem, PageOptions } from '#kernel'
import { isShown } from '#shared'
import type { Conversations } from './add-items.ts'

/** A page that is filled from behind the items that it leaves out. */
export async function visiblePage(
  conversations: Conversations,
  tenant: string,
  id: string,
  options: PageOptions,
): Promise<ItemPage | ItemProblem> {
  // One more than asked for tells whether there is more.
  const limit = options.limit + 1
  const items: ConversationItem[] = []
  let { after } = options
  for (;;) {
    const page = await conversations.page(tenant, id, { ...options, limit, after })
    if (page.problem !== undefined) return page
    for (const item of visible(page.items)) items.push(item)
    after = page.items.at(-1)?.item.id
    // A page that is shorter has very large items: it is told as it is.
    const isCut = page.hasMore && page.items.length < limit && items.length > 0
    if (items.length >= limit || !page.hasMore || isCut || after === undefined)
      return { items: items.slice(0, options.limit), hasMore: isCut || items.length >= limit }
  }
}

export function visible(items: readonly ConversationItem[]): ConversationItem[] {
  return items.filter(({ item }) => isShown(item))
}
