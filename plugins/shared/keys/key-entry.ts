/** Owner, expiry and restrictions of an API key, as the configuration and POST /keys have them. */
import { type KeyRecord, type SettingProblem, type Static, Type } from '#kernel'
import { tenantIdProblem } from '../tenants/tenant-name.ts'

/** Longer names are rejected, because they are stored and logged. */
const MAX_NAME_LENGTH = 256
/** @source RFC 3339 section 5.6 */
const DATE_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d))?$/i
/** Bounds the size of a record. */
const MAX_LISTED = 256

const name = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH, description }))
const names = (item: Parameters<typeof Type.String>[0], description: string) =>
  Type.Optional(Type.Array(Type.String(item), { minItems: 1, maxItems: MAX_LISTED, description }))

/** Members of both schemas. */
export const keyEntryMembers = {
  tenant: name('Tenant, who may use the serving routes; the tenant of its requests is `auth:<tenant>`.'),
  principal: name('Operator, who may use the control plane; named `auth:<principal>` in the audit log.'),
  role: Type.Optional(
    Type.Enum(['admin', 'user'], {
      description: 'Role of a principal; only `admin` opens the control plane.',
    }),
  ),
  expiresAt: Type.Optional(
    Type.String({
      description:
        'End of validity: a date such as 2027-01-31 (UTC), or a time such as 2027-01-31T12:00:00Z. Default: none.',
    }),
  ),
  models: names(
    { minLength: 1, maxLength: 512 },
    'Models that the key may use, by the names that clients send. Default: all.',
  ),
  routes: names(
    { pattern: '^[a-z][a-z0-9_-]{0,63}$' },
    'Routes that the key opens, by the endpoint labels of the metrics, such as `chat`, `responses` or `embeddings`. Default: all of its owner.',
  ),
}

const _KeyEntry = Type.Object(keyEntryMembers)
export type KeyEntry = Static<typeof _KeyEntry>

/** What the schema cannot express. */
export function* keyEntryProblems({
  tenant,
  principal,
  role,
  expiresAt,
}: KeyEntry): Generator<SettingProblem> {
  if ((tenant === undefined) === (principal === undefined))
    yield { path: ['tenant'], text: 'must be set, or principal, but not both' }
  for (const [path, value] of Object.entries({ tenant, principal }))
    if (value !== undefined && (value !== value.trim() || /\p{Cc}/u.test(value)))
      yield { path: [path], text: 'must have no spaces at its ends and no control characters' }
  for (const [path, value] of Object.entries({ tenant, principal })) {
    const problem = tenantIdProblem(value ?? '')
    if (problem !== null) yield { path: [path], text: problem }
  }
  if (principal !== undefined && role === undefined)
    yield { path: ['role'], text: 'must be set for a principal: admin or user' }
  if (principal === undefined && role !== undefined)
    yield { path: ['role'], text: 'must not be set for a tenant' }
  if (expiresAt !== undefined && !isTime(expiresAt))
    yield {
      path: ['expiresAt'],
      text: 'must be a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z',
    }
}

function isTime(text: string): boolean {
  return DATE_TIME.test(text) && !Number.isNaN(Date.parse(text))
}

/** @param entry without problems @param digest SHA-256 of the key, lower-case hex */
export function toKeyRecord(id: string, digest: string, entry: KeyEntry): KeyRecord {
  const { tenant, principal, role, expiresAt, models, routes } = entry
  return {
    id,
    digest,
    tenant: `auth:${tenant ?? principal}`,
    role: role ?? null,
    expiresAtMs: expiresAt === undefined ? null : Date.parse(expiresAt),
    models: models ?? null,
    routes: routes ?? null,
  }
}
