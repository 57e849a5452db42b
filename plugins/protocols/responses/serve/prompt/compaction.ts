/** Compaction: the request for a summary, and summaries in place of the items that they cover. */
import type { ChatMessage, GenerationRequest, HistoryItem } from '#kernel'
import { isSealedHere, type SealedText, type Unsealer } from './sealed-text.ts'

const TASK =
  'Summarise the conversation above for somebody who has to go on with it: facts, decisions, names, open tasks, and results of tools. Write the summary only.'

/** The conversation with the task behind it, and none of the options of the answer. */
export function toTask(generation: GenerationRequest, messages: readonly ChatMessage[]): GenerationRequest {
  return {
    ...generation,
    prompt: { kind: 'chat', messages: [...messages, { role: 'user', content: TASK }] },
    tools: [],
    toolChoice: null,
    constraint: null,
    topLogprobs: null,
    reasoning: null,
    // It belongs to another prompt.
    native: undefined,
  }
}

/** Stored items also have the plain text. Null for the summary of another service. */
export function findSummary(item: HistoryItem, unsealer: Unsealer): SealedText | null {
  const { _summary: text, _covers: covers } = item
  if (typeof text === 'string' && typeof covers === 'string') return { text, covers }
  return unsealer.open(String(item.encrypted_content))
}

/** The message that takes the place of the items that a summary covers. */
export function summaryMessage({ text }: SealedText): string {
  return `Summary of the conversation so far:\n${text}`
}

/** A summary that only the service which made it can read. */
export function isForeignSummary(item: HistoryItem, unsealer: Unsealer): boolean {
  return (
    item.type === 'compaction' &&
    findSummary(item, unsealer) === null &&
    !isSealedHere(String(item.encrypted_content))
  )
}

export function hasForeignSummary(items: readonly HistoryItem[], unsealer: Unsealer): boolean {
  return items.some((item) => isForeignSummary(item, unsealer))
}

/** The items without those that the last summary covers; it takes their place. */
export function withoutCovered(items: readonly HistoryItem[], unsealer: Unsealer): readonly HistoryItem[] {
  for (let at = items.length - 1; at >= 0; at -= 1) {
    if (items[at].type !== 'compaction') continue
    const covers = findSummary(items[at], unsealer)?.covers
    const last =
      covers === undefined ? -1 : items.findLastIndex(({ id }, index) => index < at && id === covers)
    if (last < 0) continue
    return [items[at], ...items.slice(last + 1, at), ...items.slice(at + 1)]
  }
  return items
}
