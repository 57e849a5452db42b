/** Completes the items of a request's input with ids and parts. */
import type { HistoryItem } from '#kernel'
import { type InputItem, type ItemOf, newItemId, toStoredItem } from '#shared'
import { responsesErrors } from '../../errors.ts'
import type { CreateBody } from '../../wire.ts'

/** A reference stands for another item. */
export type WholeItem = HistoryItem | ItemOf<'item_reference'>

/** @throws message_content_empty, duplicate_item (400) */
export function readInputItems(input: CreateBody['input']): WholeItem[] {
  if (typeof input === 'string') {
    const content = [{ type: 'input_text', text: input }]
    return [{ id: newItemId('message'), type: 'message', role: 'user', content, status: 'completed' }]
  }
  const items = input.map((item, index) => toWholeItem(item, `input[${index}]`))
  refuseDoubles(items)
  return items
}

function refuseDoubles(items: readonly WholeItem[]): void {
  const seen = new Map<string, WholeItem>()
  for (const item of items) {
    if (item.type === 'item_reference') continue
    const before = seen.get(item.id)
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(item))
      throw responsesErrors.duplicate_item.with({ param: 'input' }, item.id)
    seen.set(item.id, item)
  }
}

/** Types whose items have a status that clients may omit. */
const WITH_STATUS: ReadonlySet<string> = new Set([
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'mcp_call',
  'web_search_call',
  'code_interpreter_call',
  'file_search_call',
])

function toWholeItem(item: InputItem, path: string): WholeItem {
  if (item.type === 'item_reference') return { type: item.type, id: item.id }
  const at = `${path}.content`
  // Only an assistant's content may be empty.
  if (item.type === 'message' && item.content.length === 0 && item.role !== 'assistant')
    throw responsesErrors.message_content_empty.with({ param: at }, at)
  const stored = toStoredItem(item)
  return WITH_STATUS.has(item.type) && stored.status === undefined
    ? { ...stored, status: 'completed' }
    : stored
}
