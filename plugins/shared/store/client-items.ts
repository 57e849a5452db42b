/** What clients see of stored items: types and members that begin with an underscore are the gateway's alone. */
import type { HistoryItem } from '#kernel'

const UNDERSCORE = 95

/** Whether clients see all of its members. */
function isWholePublic(item: HistoryItem): boolean {
  for (const name in item) if (name.charCodeAt(0) === UNDERSCORE) return false
  return true
}

/** Whether clients see it, at least in part. */
export function isShown({ type }: HistoryItem): boolean {
  return type.charCodeAt(0) !== UNDERSCORE
}

/** Whether clients see it, and as it is stored. */
export function isPublic(item: HistoryItem): boolean {
  return isShown(item) && isWholePublic(item)
}

/** As clients see it, and as they may have it kept. */
export function withoutPrivate(item: HistoryItem): HistoryItem {
  if (isWholePublic(item)) return item
  const shown: Record<string, unknown> = {}
  for (const name in item) if (name.charCodeAt(0) !== UNDERSCORE) shown[name] = item[name]
  return shown as HistoryItem
}

/** What clients see of stored items. */
export function toClientItems(items: readonly HistoryItem[]): HistoryItem[] {
  return items.filter(isShown).map(withoutPrivate)
}
