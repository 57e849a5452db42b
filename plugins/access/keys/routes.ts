/** Routes of the keys: create, list, show and revoke. */
import {
  adminErrorFormat,
  type ConfiguredKey,
  defineValidator,
  type RequestContext,
  type RouteDefinition,
  retryAfter,
  Type,
} from '#kernel'
import { type KeyEntry, keyEntryProblems, newId, toKeyRecord } from '#shared'
import { keysErrors } from './errors.ts'
import {
  CreatedKeySchema,
  CreateKeyBody,
  KeyListSchema,
  type KeyQuery,
  KeySchema,
  listKeys,
  RevokedKeySchema,
  type StoredKey,
  toFileView,
  toStoredView,
} from './stored-key.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const HINT_LENGTH = 9
const RETRY_S = 5
/** The response contains a secret. */
const NOT_STORED = ['cache-control', 'no-store']

export interface KeyAccess {
  /** Keys of the configuration. */
  configured(): readonly ConfiguredKey[]
  /** Keys that this thread accepts, in order of creation; null while they are unknown. */
  current(): readonly StoredKey[] | null
  generate(): { readonly key: string; readonly digest: string }
  create(key: StoredKey): Promise<void>
  revoke(id: string): Promise<void>
  /** Endpoint labels of all routes. */
  endpoints(): ReadonlySet<string>
}

const createBody = defineValidator(CreateKeyBody)
const base = { access: 'admin', errors: adminErrorFormat, endpoint: 'keys' } as const
const tag = 'Keys'
const refused = { description: 'A field is wrong; `param` names it.' }
const unavailable = { description: 'The store is unavailable.' }
const missing = { description: 'No key has this id.' }

export function keyRoutes(keys: KeyAccess): readonly RouteDefinition[] {
  return [
    {
      ...base,
      method: 'POST',
      path: '/keys',
      handler: (ctx) => createKey(ctx, keys),
      docs: {
        summary: 'Create a key; the response alone contains it',
        tag,
        body: CreateKeyBody,
        responses: {
          201: { description: 'The key, valid on every thread.', schema: CreatedKeySchema },
          400: refused,
          409: { description: 'As many keys are stored as may be.' },
          503: unavailable,
        },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/keys',
      handler: (ctx) => ctx.json(200, listKeys(keys.configured(), known(keys), readQuery(ctx))),
      docs: {
        summary: 'List the keys: those of the configuration file, then the stored ones in order of creation',
        tag,
        query: {
          tenant: Type.Optional(Type.String({ description: 'Only keys of this tenant.' })),
          principal: Type.Optional(Type.String({ description: 'Only keys of this operator.' })),
          limit: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: MAX_LIMIT,
              default: DEFAULT_LIMIT,
              description: 'Page size.',
            }),
          ),
          after: Type.Optional(Type.String({ description: 'Cursor: `next` of the page before.' })),
        },
        responses: {
          200: { description: 'A page of keys.', schema: KeyListSchema },
          400: refused,
          503: unavailable,
        },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/keys/:key_id',
      handler(ctx) {
        const id = ctx.param('key_id')
        const own = configuredKey(keys, id)
        if (own !== undefined) {
          ctx.json(200, toFileView(own))
          return
        }
        const found = known(keys).find((key) => key.id === id)
        if (found === undefined) throw keysErrors.key_not_found(id)
        ctx.json(200, toStoredView(found))
      },
      docs: {
        summary: 'Show a key',
        tag,
        responses: { 200: { description: 'The key.', schema: KeySchema }, 404: missing, 503: unavailable },
      },
    },
    {
      ...base,
      method: 'DELETE',
      path: '/keys/:key_id',
      async handler(ctx) {
        const id = ctx.param('key_id')
        const own = configuredKey(keys, id)
        if (own !== undefined) throw keysErrors.key_in_configuration(id, own.setting)
        await keys.revoke(id)
        ctx.json(200, { id, revoked: true })
      },
      docs: {
        summary: 'Revoke a stored key; running requests finish',
        tag,
        responses: {
          200: { description: 'No thread accepts the key any more.', schema: RevokedKeySchema },
          404: missing,
          409: { description: 'The key is in the configuration file and is removed there.' },
          503: unavailable,
        },
      },
    },
  ]
}

/** An id of the file takes precedence over the same one in the store, as generated ids are unlikely to be repeated. */
function configuredKey(keys: KeyAccess, id: string): ConfiguredKey | undefined {
  return keys.configured().find((key) => key.id === id)
}

async function createKey(ctx: RequestContext, keys: KeyAccess): Promise<void> {
  const { name, ...entry } = ctx.body(createBody)
  checkEntry(entry, keys)
  const { key, digest } = keys.generate()
  const stored: StoredKey = {
    ...toKeyRecord(newId('key'), digest, entry),
    name: name ?? null,
    hint: key.slice(0, HINT_LENGTH),
    createdAtMs: Date.now(),
  }
  await keys.create(stored)
  ctx.json(201, { ...toStoredView(stored), key }, NOT_STORED)
}

function checkEntry(entry: KeyEntry, keys: KeyAccess): void {
  for (const { path, text } of keyEntryProblems(entry)) throw invalid(path.join('.'), text)
  if (entry.expiresAt !== undefined && Date.parse(entry.expiresAt) <= Date.now())
    throw invalid('expiresAt', `must be in the future (got ${entry.expiresAt})`)
  const known = keys.endpoints()
  for (const [index, label] of (entry.routes ?? []).entries())
    if (!known.has(label))
      throw invalid(`routes.${index}`, `must be one of ${[...known].sort().join(', ')} (got '${label}')`)
}

function readQuery(ctx: RequestContext): KeyQuery {
  return {
    tenant: ctx.queryParam('tenant'),
    principal: ctx.queryParam('principal'),
    limit: readLimit(ctx.queryParam('limit')),
    after: ctx.queryParam('after') || null,
  }
}

function readLimit(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > MAX_LIMIT)
    throw invalid(
      'limit',
      `must be an integer from 1 to ${MAX_LIMIT} (got ${JSON.stringify(text.slice(0, 20))})`,
    )
  return limit
}

function known(keys: KeyAccess): readonly StoredKey[] {
  const current = keys.current()
  if (current === null) throw keysErrors.keys_not_loaded.with(retryAfter(RETRY_S))
  return current
}

function invalid(param: string, problem: string) {
  return keysErrors.invalid_value.with({ param }, param, problem)
}
