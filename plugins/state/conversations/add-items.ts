/** Adds items under new ids: an id that a client chose and that is in use already is replaced. */
import type { HistoryService, ItemProblem, NewItem } from '#kernel'
import { conversationErrors } from './errors.ts'
import { newItemId } from './read-items.ts'

/**
 * @param act adds them, or returns what is wrong with one
 * @throws item_not_found (404), item_already_in_conversation, conversation_not_found (404)
 */
export async function addItems<R extends object>(
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

export function isProblem(result: object): result is ItemProblem {
  return 'problem' in result && result.problem !== undefined
}

/** @param id of the conversation */
export function toError(problem: ItemProblem, id = '') {
  if (problem.problem === 'conversation_not_found') return conversationErrors.conversation_not_found(id)
  return conversationErrors.item_not_found(problem.id)
}

function withNewId(entry: NewItem): NewItem {
  return 'item' in entry ? { item: { ...entry.item, id: newItemId(entry.item.type) } } : entry
}

export type Conversations = HistoryService['conversations']
