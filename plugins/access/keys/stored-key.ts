/** Keys as the store, the routes and their listing have them. Their secrets are never stored. */
import {
  type ConfiguredKey,
  defineCommand,
  defineReplica,
  isObject,
  type KeyRecord,
  type KeyScope,
  type Static,
  Type,
} from '#kernel'
import { keyEntryMembers } from '#shared'

/** Plain data; also the record in the store. */
export interface StoredKey extends KeyRecord {
  /** Description by its creator; null without one. */
  readonly name: string | null
  /** First characters of the key, by which its owner recognises it. */
  readonly hint: string
  /** Milliseconds since 1970. */
  readonly createdAtMs: number
}

/** In order of creation; null while they are unknown. */
export const StoredKeysReplica = defineReplica<readonly StoredKey[] | null>('keys.stored', null)
export const CreateKey = defineCommand<StoredKey, void>('keys.create')
export const RevokeKey = defineCommand<string, void>('keys.revoke')

/** Whether a record of the store has the members that the access check relies on. */
export function isStoredKey(value: unknown): value is StoredKey {
  if (!isObject(value)) return false
  const { id, digest, tenant, role, expiresAtMs, models, routes, createdAtMs } = value
  return (
    typeof id === 'string' &&
    typeof digest === 'string' &&
    /^[0-9a-f]{64}$/.test(digest) &&
    typeof tenant === 'string' &&
    (role === null || role === 'admin' || role === 'user') &&
    (expiresAtMs === null || typeof expiresAtMs === 'number') &&
    isListOrNull(models) &&
    isListOrNull(routes) &&
    typeof createdAtMs === 'number'
  )
}

function isListOrNull(value: unknown): boolean {
  return value === null || (Array.isArray(value) && value.every((item) => typeof item === 'string'))
}

export const CreateKeyBody = Type.Object(
  {
    name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 256, description: 'Description, shown in listings.' }),
    ),
    ...keyEntryMembers,
  },
  { additionalProperties: false },
)

const nullableText = (description: string) => Type.Union([Type.String(), Type.Null()], { description })
const nullableList = (description: string) =>
  Type.Union([Type.Array(Type.String()), Type.Null()], { description })

const members = {
  name: nullableText('Description; null without one.'),
  tenant: Type.Optional(Type.String({ description: 'Owner, of keys of the serving routes.' })),
  principal: Type.Optional(Type.String({ description: 'Owner, of keys of the control plane.' })),
  role: Type.Optional(
    Type.Enum(['admin', 'user'], { description: 'Role on the control plane, of keys that open it.' }),
  ),
  status: Type.Enum(['active', 'expired']),
  expiresAt: nullableText('RFC 3339; null for keys that do not expire.'),
  models: nullableList('Models that the key may use; null for all.'),
  routes: nullableList('Endpoint labels that the key opens; null for all.'),
}

const storedMembers = {
  id: Type.String(),
  source: Type.Literal('store', { description: 'Created here; may be revoked.' }),
  ...members,
  hint: Type.String({ description: 'First characters of the key.' }),
  createdAt: Type.String({ description: 'RFC 3339.' }),
}

const FileKeySchema = Type.Object({
  id: nullableText('Null for keys without an id.'),
  source: Type.Literal('file', { description: 'Of the configuration file; is changed there only.' }),
  setting: Type.String({ description: 'Its setting, such as `plugins.auth.keys.0`.' }),
  ...members,
})
export const KeySchema = Type.Union([Type.Object(storedMembers), FileKeySchema])
export const CreatedKeySchema = Type.Object({
  ...storedMembers,
  key: Type.String({ description: 'The key itself; never shown again.' }),
})
export const KeyListSchema = Type.Object({
  keys: Type.Array(KeySchema),
  next: nullableText('Value of `after` for the next page; null at the end.'),
})
export const RevokedKeySchema = Type.Object({ id: Type.String(), revoked: Type.Literal(true) })

export type KeyView = Static<typeof KeySchema>

export type StoredKeyView = Extract<KeyView, { source: 'store' }>

const OWNER_PREFIX = 'auth:'

/** As clients see it: without the digest. */
export function toStoredView(key: StoredKey): StoredKeyView {
  const { id, name, role, hint, createdAtMs } = key
  const owner = ownerOf(key.tenant)
  return {
    id,
    source: 'store',
    name,
    ...(role === null ? { tenant: owner } : { principal: owner, role }),
    ...toScope(key),
    hint,
    createdAt: new Date(createdAtMs).toISOString(),
  }
}

export function toFileView(key: ConfiguredKey): KeyView {
  const { id, name, setting, isServing, role } = key
  const owner = ownerOf(key.owner)
  return {
    id,
    source: 'file',
    setting,
    name,
    ...(isServing ? { tenant: owner } : { principal: owner }),
    ...(role !== null && { role }),
    ...toScope(key),
  }
}

/** Of `Identity.tenant`. */
function ownerOf(tenant: string): string {
  return tenant.slice(OWNER_PREFIX.length)
}

function toScope({ expiresAtMs, models, routes }: KeyScope) {
  return {
    status: expiresAtMs !== null && expiresAtMs <= Date.now() ? 'expired' : 'active',
    expiresAt: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
    models: models === null ? null : [...models],
    routes: routes === null ? null : [...routes],
  } as const
}

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

/** @param stored in order of their ids */
export function listKeys(
  configured: readonly ConfiguredKey[],
  stored: readonly StoredKey[],
  query: KeyQuery,
): KeyPage {
  const [, position] = FILE_CURSOR.exec(query.after ?? '') ?? []
  const passed = query.after === null ? 0 : position === undefined ? configured.length : Number(position) + 1
  const lastId = position === undefined ? (query.after ?? '') : ''
  const isOwned = ({ owner, isServing, role }: Pick<ConfiguredKey, 'owner' | 'isServing' | 'role'>) =>
    (query.tenant === null || (isServing && owner === OWNER_PREFIX + query.tenant)) &&
    (query.principal === null || (role !== null && owner === OWNER_PREFIX + query.principal))
  const found: { readonly cursor: string; view(): KeyView }[] = []
  for (const [index, key] of configured.entries())
    if (index >= passed && isOwned(key)) found.push({ cursor: `file.${index}`, view: () => toFileView(key) })
  for (const key of stored)
    if (key.id > lastId && isOwned({ owner: key.tenant, isServing: key.role === null, role: key.role }))
      found.push({ cursor: key.id, view: () => toStoredView(key) })
  const page = found.slice(0, query.limit)
  return {
    keys: page.map((listed) => listed.view()),
    next: found.length > query.limit ? page[query.limit - 1].cursor : null,
  }
}
