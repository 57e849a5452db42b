/** Handlers of the conversation routes. @source OpenAI API reference, Conversations */
import {
  type Conversation,
  type ConversationHistory,
  type ItemProblem,
  type NewItem,
  type PageOptions,
  queryError,
  type RequestContext,
  tenantOf,
} from '#kernel'
import { includeNames, isInclude, isShown, newId, newItemId, warnOfUnread, withItemTypes } from '#shared'
import { conversationErrors, shown } from './errors.ts'
import { toNewItems } from './read-items.ts'
import { showItem, showList, visible, visiblePage } from './show-item.ts'
import { conversationCreate, conversationUpdate, itemsCreate, type MetadataChanges } from './wire.ts'

const MAX_METADATA = 16
const DEFAULT_LIMIT = 100

export class ConversationHandlers {
  readonly #conversations: ConversationHistory

  constructor(conversations: ConversationHistory) {
    this.#conversations = conversations
  }

  async create(ctx: RequestContext): Promise<void> {
    const body = readBody(ctx)
    const { metadata, items } = conversationCreate.parse(body)
    warnOfUnread(ctx, body, { metadata: true, items: true })
    const conversation: Conversation = {
      id: newId('conv'),
      createdAtSec: Math.floor(Date.now() / 1_000),
      metadata: mergeMetadata({}, metadata ?? {}),
    }
    const tenant = tenantOf(ctx)
    const made = await addItems(toNewItems(items ?? []), (news) =>
      this.#conversations.create(tenant, conversation, news),
    )
    ctx.json(200, showConversation(made))
  }

  async get(ctx: RequestContext): Promise<void> {
    const id = conversationId(ctx)
    ctx.json(200, showConversation(found(await this.#conversations.get(tenantOf(ctx), id), id)))
  }

  async update(ctx: RequestContext): Promise<void> {
    const id = conversationId(ctx)
    const body = readBody(ctx)
    const changes = conversationUpdate.parse(body).metadata ?? {}
    warnOfUnread(ctx, body, { metadata: true })
    const tenant = tenantOf(ctx)
    const updated =
      Object.keys(changes).length === 0
        ? await this.#conversations.get(tenant, id)
        : await this.#conversations.changeMetadata(tenant, id, (metadata) => mergeMetadata(metadata, changes))
    ctx.json(200, showConversation(found(updated, id)))
  }

  async remove(ctx: RequestContext): Promise<void> {
    const id = conversationId(ctx)
    if (!(await this.#conversations.delete(tenantOf(ctx), id)))
      throw conversationErrors.conversation_not_found(id)
    ctx.json(200, { id, object: 'conversation.deleted', deleted: true })
  }

  async listItems(ctx: RequestContext): Promise<void> {
    const id = conversationId(ctx)
    const query = new URLSearchParams(ctx.query)
    const options = readPageOptions(query)
    const include = readInclude(query)
    const page = await visiblePage(this.#conversations, tenantOf(ctx), id, options)
    if (page.problem === 'conversation_not_found') throw toError(page, id)
    if (page.problem !== undefined) throw conversationErrors.invalid_cursor.with({ param: 'after' }, page.id)
    ctx.json(200, showList(page.items, page.hasMore, include))
  }

  async addItems(ctx: RequestContext): Promise<void> {
    const id = conversationId(ctx)
    const include = readInclude(new URLSearchParams(ctx.query))
    const body = readBody(ctx)
    const items = toNewItems(itemsCreate.parse(body).items)
    warnOfUnread(ctx, body, { items: true })
    const tenant = tenantOf(ctx)
    // Before the items are looked up: other tenants must not learn which of them exist.
    found(await this.#conversations.get(tenant, id), id)
    const added = await addItems(items, (news) => this.#conversations.add(tenant, id, news))
    ctx.json(200, showList(visible(added), false, include))
  }

  async getItem(ctx: RequestContext): Promise<void> {
    const id = conversationId(ctx)
    const include = readInclude(new URLSearchParams(ctx.query))
    const itemId = ctx.param('item_id')
    const item = await this.#conversations.item(tenantOf(ctx), id, itemId)
    if (isProblem(item)) throw toError(item, id)
    if (!isShown(item.item)) throw conversationErrors.item_not_found(itemId)
    ctx.json(200, showItem(item, include))
  }

  async removeItem(ctx: RequestContext): Promise<void> {
    const id = conversationId(ctx)
    const left = await this.#conversations.removeItem(tenantOf(ctx), id, ctx.param('item_id'))
    if (isProblem(left)) throw toError(left, id)
    ctx.json(200, showConversation(left))
  }
}

function showConversation({ id, createdAtSec, metadata }: Conversation) {
  return { id, object: 'conversation', created_at: createdAtSec, metadata }
}

function found(conversation: Conversation | undefined, id: string): Conversation {
  if (conversation === undefined) throw conversationErrors.conversation_not_found(id)
  return conversation
}

/** @throws invalid_metadata (400) when too much is left */
function mergeMetadata(before: Conversation['metadata'], changes: MetadataChanges): Conversation['metadata'] {
  const merged = new Map(Object.entries(before))
  for (const [key, text] of Object.entries(changes)) {
    if (text === null) merged.delete(key)
    else merged.set(key, text)
  }
  if (merged.size > MAX_METADATA) {
    const problem = `must have at most ${MAX_METADATA} properties`
    throw conversationErrors.invalid_metadata.with({ param: 'metadata' }, 'metadata', problem)
  }
  // Defines own members, also for a key such as `__proto__`.
  return Object.fromEntries(merged)
}

/** The JSON of the body, items with their types. An absent body counts as an empty object. */
function readBody(ctx: RequestContext): unknown {
  const body = ctx.bodyBytes.length === 0 ? {} : ctx.bodyJson()
  const items = (body as { readonly items?: unknown } | null)?.items
  return Array.isArray(items) ? { ...(body as object), items: withItemTypes(items) } : body
}

function conversationId(ctx: RequestContext): string {
  return ctx.param('conversation_id')
}

/**
 * Adds items; an id of the client's that is in use already is replaced.
 * @param act adds them, or returns a problem with one
 * @throws item_not_found (404), item_already_in_conversation, conversation_not_found (404)
 */
async function addItems<R extends object>(
  items: readonly NewItem[],
  act: (items: readonly NewItem[]) => Promise<R | ItemProblem>,
): Promise<R> {
  let left = [...items]
  // Each round replaces one id, and no other item has the new one.
  for (let round = 0; round <= items.length; round++) {
    const result = await act(left)
    if (!isProblem(result)) return result
    if (result.problem !== 'item_exists') throw toError(result)
    const { id } = result
    const index = left.findLastIndex((entry) => 'item' in entry && entry.item.id === id)
    if (index < 0) throw conversationErrors.item_already_in_conversation.with({ param: 'items' }, id)
    left = left.with(index, withNewId(left[index]))
  }
  throw conversationErrors.item_already_in_conversation.with({ param: 'items' }, '')
}

function isProblem(result: object): result is ItemProblem {
  return 'problem' in result && result.problem !== undefined
}

/** @param id of the conversation */
function toError(problem: ItemProblem, id = '') {
  if (problem.problem === 'conversation_not_found') return conversationErrors.conversation_not_found(id)
  return conversationErrors.item_not_found(problem.id)
}

function withNewId(entry: NewItem): NewItem {
  return 'item' in entry ? { item: { ...entry.item, id: newItemId(entry.item.type) } } : entry
}

function readPageOptions(query: URLSearchParams): PageOptions {
  const after = query.get('after')
  return {
    order: query.get('order') === 'asc' ? 'asc' : 'desc',
    limit: Number(query.get('limit') ?? DEFAULT_LIMIT),
    ...(after !== null && { after }),
  }
}

/** @throws invalid_query */
function readInclude(query: URLSearchParams): ReadonlySet<string> {
  const names = includeNames(query)
  for (const name of names) if (!isInclude(name)) throw queryError('include', `must not hold ${shown(name)}`)
  return new Set(names)
}
