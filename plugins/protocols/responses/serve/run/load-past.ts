/** Loads the history before a turn, and the stored items that its input names. */
import type { HistoryItem, HistoryProblem, HistoryService, LoadedHistory } from '#kernel'
import { responsesErrors, wrongValue } from '../../errors.ts'
import type { WholeItem } from '../read/read-items.ts'
import type { CreateRequest } from '../read/read-request.ts'

/** The last response of a WebSocket, which need not be stored. */
export interface RememberedTurn {
  readonly responseId: string
  readonly items: readonly HistoryItem[]
}

export async function loadPast(
  history: HistoryService | undefined,
  tenant: string,
  { previousResponseId, conversationId }: CreateRequest,
  remembered: RememberedTurn | null,
): Promise<readonly HistoryItem[]> {
  if (previousResponseId !== null) {
    if (remembered?.responseId === previousResponseId) return remembered.items
    const isPossible = history !== undefined && previousResponseId.startsWith('resp_')
    const loaded: LoadedHistory | HistoryProblem = isPossible
      ? await history.responses.loadChain(tenant, previousResponseId)
      : { problem: 'not_found' }
    if (loaded.problem === undefined) return loaded.items
    throw chainProblem(loaded.problem, previousResponseId)
  }
  if (conversationId === null) return []
  const loaded: LoadedHistory | HistoryProblem =
    history === undefined
      ? { problem: 'not_found' }
      : await history.conversations.load(tenant, conversationId)
  if (loaded.problem === undefined) return loaded.items
  if (loaded.problem === 'too_long')
    throw responsesErrors.conversation_too_long.with({ param: 'conversation' })
  throw unknownConversation(conversationId)
}

function chainProblem(problem: HistoryProblem['problem'], id: string) {
  const options = { param: 'previous_response_id' }
  switch (problem) {
    case 'not_found':
      return responsesErrors.previous_response_not_found.with(options, id)
    case 'in_progress':
      return responsesErrors.previous_response_in_progress.with(options, id)
    case 'unusable':
      return responsesErrors.invalid_previous_response.with(options, id)
    case 'too_long':
      return responsesErrors.previous_response_chain_too_long.with(options)
  }
}

export function unknownConversation(id: string) {
  return responsesErrors.conversation_not_found.with({ param: 'conversation' }, id)
}

/** Items that the input refers to, from the loaded history, the input or the store. */
export async function findItems(
  history: HistoryService | undefined,
  tenant: string,
  before: readonly HistoryItem[],
  input: readonly WholeItem[],
): Promise<Map<string, HistoryItem>> {
  const wanted = new Set<string>()
  for (const item of input) {
    if (item.type === 'item_reference') wanted.add(item.id)
    else if (item.type === 'mcp_approval_response')
      wanted.add(String((item as HistoryItem).approval_request_id))
  }
  const found = new Map<string, HistoryItem>()
  if (wanted.size === 0) return found
  for (const item of [...before, ...input])
    if (item.type !== 'item_reference' && wanted.has(item.id)) found.set(item.id, item as HistoryItem)
  const others = [...wanted].filter((id) => !found.has(id))
  if (others.length === 0 || history === undefined) return found
  const stored = await history.resolveItems(tenant, others)
  if (stored === null) wrongValue('input', 'refers to more than one request may load')
  for (const [id, item] of stored) found.set(id, item)
  return found
}

/** Replaces references by their items, and omits items of the history. */
export function replaceReferences(
  before: readonly HistoryItem[],
  input: readonly WholeItem[],
  known: ReadonlyMap<string, HistoryItem>,
): HistoryItem[] {
  if (!input.some(({ type }) => type === 'item_reference')) return [...input] as HistoryItem[]
  const inHistory = new Set(before.map(({ id }) => id))
  const whole: HistoryItem[] = []
  for (const item of input) {
    if (item.type !== 'item_reference') {
      whole.push(item as HistoryItem)
      continue
    }
    const { id } = item
    if (inHistory.has(id)) continue
    const found = known.get(id)
    if (found === undefined)
      throw responsesErrors.referenced_item_not_found.with({ param: 'input', code: 'item_not_found' }, id)
    whole.push(found)
  }
  return whole
}
