/** Items that a client adds: checked, every one, before any is kept, and brought into the form that history has. */
import type { NewItem } from '#kernel'
import { uuidV7Hex, withoutPrivate } from '#shared'
import { conversationErrors } from './errors.ts'
import { readContent, readOutput, readTexts } from './read-content.ts'
import { asObject, type Json, needList, needText } from './read-members.ts'

export const MAX_ITEMS = 20
const MAX_CALL_ID_CHARS = 64
const ROLES = new Set(['user', 'assistant', 'system', 'developer'])

/** Prefix of new ids, members that must be there, by type. @source OpenAI API reference, Responses */
const TYPES: ReadonlyMap<string, { readonly prefix: string; check(item: Json, path: string): Json }> =
  new Map([
    ['message', { prefix: 'msg', check: checkMessage }],
    ['reasoning', { prefix: 'rs', check: checkReasoning }],
    ['function_call', { prefix: 'fc', check: checkCall }],
    ['function_call_output', { prefix: 'fco', check: checkCallOutput }],
    [
      'mcp_list_tools',
      { prefix: 'mcpl', check: (item: Json, path: string) => needs(item, path, ['server_label'], ['tools']) },
    ],
    [
      'mcp_call',
      {
        prefix: 'mcp',
        check: (item: Json, path: string) => needs(item, path, ['server_label', 'name', 'arguments']),
      },
    ],
  ])

/** @throws missing_required_parameter, invalid_type, invalid_value, too_many_items and what single items are refused for */
export function readItems(value: unknown): NewItem[] {
  if (value === undefined || value === null) {
    throw conversationErrors.missing_required_parameter.with({ param: 'items' }, 'items')
  }
  if (!Array.isArray(value))
    throw conversationErrors.invalid_type.with({ param: 'items' }, 'items', 'an array')
  if (value.length === 0)
    throw conversationErrors.missing_required_parameter.with({ param: 'items' }, 'an item')
  if (value.length > MAX_ITEMS) throw conversationErrors.too_many_items.with({ param: 'items' }, MAX_ITEMS)
  return value.map((item, index) => readItem(item, `items[${index}]`))
}

/** A new id for an item of that type. */
export function newItemId(type: string): string {
  return `${TYPES.get(type)?.prefix ?? 'item'}_${uuidV7Hex()}`
}

function readItem(value: unknown, path: string): NewItem {
  const item = asObject(value, path)
  const type = typeOf(item, path)
  if (type === 'item_reference') return { reference: needText(item, path, 'id') }
  const known = TYPES.get(type)
  if (known === undefined)
    throw conversationErrors.unsupported_item_type.with({ param: `${path}.type` }, type)
  const { id, created_at: _, ...rest } = known.check(item, path)
  const isOwn = typeof id === 'string' && /^[A-Za-z0-9_-]{1,128}$/.test(id)
  return {
    item: withoutPrivate({ ...rest, id: isOwn ? id : newItemId(type), type, status: 'completed' }),
  }
}

/** Without a type, an item with a role is a message, and one that only has an id a reference. */
function typeOf(item: Json, path: string): string {
  const { type } = item
  if (typeof type === 'string') return type
  if (type !== undefined && type !== null) {
    throw conversationErrors.invalid_type.with({ param: `${path}.type` }, `${path}.type`, 'a string')
  }
  if ('role' in item) return 'message'
  if ('id' in item) return 'item_reference'
  throw conversationErrors.missing_required_parameter.with({ param: `${path}.type` }, `${path}.type`)
}

function checkMessage(item: Json, path: string): Json {
  const role = needText(item, path, 'role')
  if (!ROLES.has(role)) {
    const param = `${path}.role`
    throw conversationErrors.invalid_value.with({ param }, param, `one of ${[...ROLES].join(', ')}`)
  }
  return { ...item, content: readContent(item.content, role, `${path}.content`) }
}

function checkCall(item: Json, path: string): Json {
  needs(item, path, ['call_id', 'name', 'arguments'])
  return checkCallId(item, path)
}

function checkCallOutput(item: Json, path: string): Json {
  checkCallId(item, path)
  return { ...item, output: readOutput(item.output, `${path}.output`) }
}

function checkReasoning(item: Json, path: string): Json {
  const { content } = item
  return {
    ...item,
    summary: readTexts(needList(item, path, 'summary'), 'summary_text', `${path}.summary`),
    ...(content !== undefined &&
      content !== null && {
        content: readTexts(needList(item, path, 'content'), 'reasoning_text', `${path}.content`),
      }),
  }
}

function checkCallId(item: Json, path: string): Json {
  const { length } = needText(item, path, 'call_id')
  if (length === 0 || length > MAX_CALL_ID_CHARS) {
    const param = `${path}.call_id`
    throw conversationErrors.invalid_value.with({ param }, param, `1 to ${MAX_CALL_ID_CHARS} characters long`)
  }
  return item
}

function needs(item: Json, path: string, texts: readonly string[], lists: readonly string[] = []): Json {
  for (const member of texts) needText(item, path, member)
  for (const member of lists) needList(item, path, member)
  return item
}
