/** Summaries that stand for what came before them. */
import type { HistoryItem } from '#kernel'
import { requireOpened, type SealedText, type Unsealer } from './sealed-text.ts'

/** Of a stored item the text is kept beside what was sealed for the client. @throws invalid_encrypted_content (400) */
export function summaryOf(item: HistoryItem, unsealer: Unsealer): SealedText {
  const { _summary: text, _covers: covers } = item
  if (typeof text === 'string' && typeof covers === 'string') return { text, covers }
  return requireOpened(unsealer.open(String(item.encrypted_content)))
}

/** The items without those that the last summary covers; it takes their place. */
export function withoutCovered(items: readonly HistoryItem[], unsealer: Unsealer): readonly HistoryItem[] {
  for (let at = items.length - 1; at >= 0; at -= 1) {
    if (items[at].type !== 'compaction') continue
    const { covers } = summaryOf(items[at], unsealer)
    const last =
      covers === undefined ? -1 : items.findLastIndex(({ id }, index) => index < at && id === covers)
    if (last < 0) continue
    return [items[at], ...items.slice(last + 1, at), ...items.slice(at + 1)]
  }
  return items
}
