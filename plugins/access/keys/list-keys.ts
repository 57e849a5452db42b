/** The listing of all keys in pages: those of the configuration file in its order, then the stored ones in order of creation. */
import type { ConfiguredKey } from '#kernel'
import { type KeyView, type StoredKey, toFileView, toStoredView } from './stored-key.ts'

/** Ids of stored keys do not begin with it. */
const FILE_CURSOR = /^file\.(\d{1,6})$/

export interface KeyQuery {
  readonly tenant: string | null
  readonly principal: string | null
  readonly limit: number
  /** Cursor of the page before; null for the first page. */
  readonly after: string | null
}

export interface KeyPage {
  readonly keys: readonly KeyView[]
  /** Cursor; null at the end. */
  readonly next: string | null
}

interface Listed {
  readonly cursor: string
  view(): KeyView
}

/** @param stored in order of their ids */
export function listKeys(
  configured: readonly ConfiguredKey[],
  stored: readonly StoredKey[],
  query: KeyQuery,
): KeyPage {
  const [, position] = FILE_CURSOR.exec(query.after ?? '') ?? []
  const passed = query.after === null ? 0 : position === undefined ? configured.length : Number(position) + 1
  const lastId = position === undefined ? (query.after ?? '') : ''
  const found: Listed[] = []
  for (const [index, key] of configured.entries())
    if (index >= passed && isOwned(query, key.owner, key.isServing, key.role !== null))
      found.push({ cursor: `file.${index}`, view: () => toFileView(key) })
  for (const key of stored)
    if (key.id > lastId && isOwned(query, key.tenant, key.role === null, key.role !== null))
      found.push({ cursor: key.id, view: () => toStoredView(key) })
  const page = found.slice(0, query.limit)
  return {
    keys: page.map((listed) => listed.view()),
    next: found.length > query.limit ? page[query.limit - 1].cursor : null,
  }
}

/** @param owner as `Identity.tenant` */
function isOwned(
  { tenant, principal }: KeyQuery,
  owner: string,
  isServing: boolean,
  isOperator: boolean,
): boolean {
  return (
    (tenant === null || (isServing && owner === `auth:${tenant}`)) &&
    (principal === null || (isOperator && owner === `auth:${principal}`))
  )
}
