/** Routes of the keys: create, list, show and revoke. */
import {
  adminErrorFormat,
  defineValidator,
  type Host,
  type KeyRing,
  queryError,
  type RequestContext,
  type RouteDefinition,
  retryAfter,
  Type,
} from '#kernel'
import { type KeyEntry, keyEntryProblems, newId, tenantIdProblem, toKeyRecord } from '#shared'
import { keysErrors } from './errors.ts'
import {
  CreatedKeySchema,
  CreateKey,
  CreateKeyBody,
  KeyListSchema,
  type KeyQuery,
  KeySchema,
  listKeys,
  RevokedKeySchema,
  RevokeKey,
  type StoredKey,
  StoredKeysReplica,
  toFileView,
  toStoredView,
} from './stored-key.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const HINT_LENGTH = 9
const RETRY_S = 5
/** The response contains a secret. */
const NOT_STORED = ['cache-control', 'no-store']

const createBody = defineValidator(CreateKeyBody)
const base = { access: 'admin', errors: adminErrorFormat, endpoint: 'keys' } as const
const tag = 'Keys'
const refused = { description: 'A field is wrong; `param` names it.' }
const unavailable = { description: 'The store is unavailable.' }
const missing = { description: 'No key has this id.' }

export function keyRoutes(host: Host, ring: KeyRing): readonly RouteDefinition[] {
  const replica = host.replica(StoredKeysReplica)
  const known = () => {
    if (replica.current === null) throw keysErrors.keys_not_loaded.with(retryAfter(RETRY_S))
    return replica.current
  }
  /** An id of the file takes precedence over the same one in the store, as generated ids are unlikely to be repeated. */
  const configuredKey = (id: string) => ring.configured.find((key) => key.id === id)
  return [
    {
      ...base,
      method: 'POST',
      path: '/keys',
      handler: (ctx) => createKey(ctx, host, ring),
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
      handler: (ctx) => ctx.json(200, listKeys(ring.configured, known(), readQuery(ctx))),
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
        const own = configuredKey(id)
        if (own !== undefined) {
          ctx.json(200, toFileView(own))
          return
        }
        const found = known().find((key) => key.id === id)
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
        const own = configuredKey(id)
        if (own !== undefined) throw keysErrors.key_in_configuration(id, own.setting)
        await host.command(RevokeKey, id)
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

async function createKey(ctx: RequestContext, host: Host, ring: KeyRing): Promise<void> {
  const { name, ...entry } = ctx.body(createBody)
  checkEntry(entry, new Set(host.routes().map(({ endpoint }) => endpoint ?? 'other')))
  const { key, digest } = ring.generate()
  const stored: StoredKey = {
    ...toKeyRecord(newId('key'), digest, entry),
    name: name ?? null,
    hint: key.slice(0, HINT_LENGTH),
    createdAtMs: Date.now(),
  }
  await host.command(CreateKey, stored)
  ctx.json(201, { ...toStoredView(stored), key }, NOT_STORED)
}

/** @param endpoints labels of all routes */
function checkEntry(entry: KeyEntry, endpoints: ReadonlySet<string>): void {
  for (const { path, text } of keyEntryProblems(entry)) throw invalid(path.join('.'), text)
  if (entry.expiresAt !== undefined && Date.parse(entry.expiresAt) <= Date.now())
    throw invalid('expiresAt', `must be in the future (got ${entry.expiresAt})`)
  for (const [index, label] of (entry.routes ?? []).entries())
    if (!endpoints.has(label))
      throw invalid(`routes.${index}`, `must be one of ${[...endpoints].sort().join(', ')} (got '${label}')`)
}

function readQuery(ctx: RequestContext): KeyQuery {
  return {
    tenant: readOwner(ctx, 'tenant'),
    principal: readOwner(ctx, 'principal'),
    limit: Number(ctx.queryParam('limit') ?? DEFAULT_LIMIT),
    after: ctx.queryParam('after') || null,
  }
}

/** An id as POST /keys has it: a name such as `auth:team-a` would find nothing. */
function readOwner(ctx: RequestContext, param: 'tenant' | 'principal'): string | null {
  const id = ctx.queryParam(param)
  const problem = tenantIdProblem(id ?? '')
  if (problem !== null) throw queryError(param, problem)
  return id
}

function invalid(param: string, problem: string) {
  return keysErrors.invalid_value.with({ param }, param, problem)
}
