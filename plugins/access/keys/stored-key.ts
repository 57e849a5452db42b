/** A key as the store and the routes have it. Its secret is never stored. */
import { isObject, type KeyRecord, type Static, Type } from '#kernel'
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
  id: Type.String(),
  name: nullableText('Description; null without one.'),
  tenant: Type.Optional(Type.String({ description: 'Owner, of keys of the serving routes.' })),
  principal: Type.Optional(Type.String({ description: 'Owner, of keys of the control plane.' })),
  role: Type.Optional(Type.Enum(['admin', 'user'], { description: 'Role of the principal.' })),
  hint: Type.String({ description: 'First characters of the key.' }),
  status: Type.Enum(['active', 'expired']),
  createdAt: Type.String({ description: 'RFC 3339.' }),
  expiresAt: nullableText('RFC 3339; null for keys that do not expire.'),
  models: nullableList('Models that the key may use; null for all.'),
  routes: nullableList('Endpoint labels that the key opens; null for all.'),
}

export const KeySchema = Type.Object(members)
export const CreatedKeySchema = Type.Object({
  ...members,
  key: Type.String({ description: 'The key itself; never shown again.' }),
})
export const KeyListSchema = Type.Object({
  keys: Type.Array(KeySchema),
  next: nullableText('Value of `after` for the next page; null at the end.'),
})
export const RevokedKeySchema = Type.Object({ id: Type.String(), revoked: Type.Literal(true) })

export type KeyView = Static<typeof KeySchema>

const OWNER_PREFIX = 'auth:'

/** As clients see it: without the digest. */
export function toKeyView(key: StoredKey): KeyView {
  const { id, name, role, hint, createdAtMs, expiresAtMs, models, routes } = key
  const owner = key.tenant.slice(OWNER_PREFIX.length)
  return {
    id,
    name,
    ...(role === null ? { tenant: owner } : { principal: owner, role }),
    hint,
    status: expiresAtMs !== null && expiresAtMs <= Date.now() ? 'expired' : 'active',
    createdAt: new Date(createdAtMs).toISOString(),
    expiresAt: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
    models: models === null ? null : [...models],
    routes: routes === null ? null : [...routes],
  }
}
