/** Client view of stored items: types and members that begin with an underscore are internal to the gateway. */
import type { HistoryItem } from '#kernel'

const UNDERSCORE = 95

/** Whether no member of the item is internal. */
function hasOnlyPublicMembers(item: HistoryItem): boolean {
  for (const name in item) if (name.charCodeAt(0) === UNDERSCORE) return false
  return true
}

/** Whether the item is visible to clients. */
export function isShown({ type }: HistoryItem): boolean {
  return type.charCodeAt(0) !== UNDERSCORE
}

/** Whether the item is visible to clients with all of its members. */
export function isPublic(item: HistoryItem): boolean {
  return isShown(item) && hasOnlyPublicMembers(item)
}

/** The item without its internal members. */
export function withoutPrivate(item: HistoryItem): HistoryItem {
  if (hasOnlyPublicMembers(item)) return item
  const shown: Record<string, unknown> = {}
  for (const name in item) if (name.charCodeAt(0) !== UNDERSCORE) shown[name] = item[name]
  return shown as HistoryItem
}

/** Visible items without their internal members. */
export function toClientItems(items: readonly HistoryItem[]): HistoryItem[] {
  return items.filter(isShown).map(withoutPrivate)
}
