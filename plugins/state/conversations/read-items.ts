/** Converts the items of a client to history items. */
import type { HistoryItem, NewItem } from '#kernel'
import { type InputItem, toStoredItem } from '#shared'
import { conversationErrors } from './errors.ts'

/** @throws message_content_empty (400) */
export function toNewItems(items: readonly InputItem[]): NewItem[] {
  return items.map((item, index) => {
    if (item.type === 'item_reference') return { reference: item.id }
    const param = `items[${index}].content`
    // Only an assistant's content may be empty.
    if (item.type === 'message' && item.content.length === 0 && item.role !== 'assistant')
      throw conversationErrors.message_content_empty.with({ param }, param)
    const { created_at: _, ...stored } = toStoredItem(item)
    return { item: { ...(stored as HistoryItem), status: 'completed' } }
  })
}
