/** The /ha routes: state of the mesh, its configuration keys, the global rate limit, and leaving it. */
import { defineValidator, type Host, type RequestContext, type RouteDefinition, Type } from '#kernel'
import { knownMembers, warnOfUnread } from '#shared'
import { meshErrorFormat, meshErrors } from './errors.ts'
import {
  AcceptEngine,
  LeaveMesh,
  ReadConfigKey,
  ReadGlobalRate,
  ReadHealth,
  ReadPolicies,
  ReadStatus,
  ReadWorkers,
  RestoreMesh,
  SetGlobalRate,
  WriteConfigKey,
} from './mesh-commands.ts'
import {
  AcceptedSchema,
  ConfigEntrySchema,
  ConfigUpdatedSchema,
  ConfigValueSchema,
  HealthSchema,
  PolicyStateSchema,
  RateLimitSchema,
  RateLimitStatsSchema,
  RateLimitUpdatedSchema,
  RestoredSchema,
  ShutdownSchema,
  StatusSchema,
  WorkerStateSchema,
} from './wire.ts'

const MAX_VALUE_BYTES = 1024 * 1024
/** What the API calls the key of the global limit. */
const RESERVED_KEY = 'global_rate_limit'
const NOT_STORED = ['cache-control', 'no-store'] as const

const configEntry = defineValidator(ConfigEntrySchema)
const rateLimit = defineValidator(RateLimitSchema)

const invalid = { description: 'Invalid body; nothing was changed.' }
const unavailable = { description: 'The mesh engine is unreachable or has lost data; nothing was changed.' }
const notEnforced = { description: '`plugins.limits` is `false`.' }

type Docs = NonNullable<RouteDefinition['docs']>

const ok = (description: string, schema: Docs['body']) => ({ 200: { description, schema } })

/** @param read returns the body of the response */
function route(
  method: 'GET' | 'POST',
  path: string,
  docs: Omit<Docs, 'tag'>,
  read: (ctx: RequestContext) => Promise<unknown>,
  status = 200,
): RouteDefinition {
  return {
    access: 'admin',
    errors: meshErrorFormat,
    endpoint: 'mesh',
    method,
    path,
    handler: async (ctx) => ctx.json(status, await read(ctx), NOT_STORED),
    docs: { tag: 'Mesh', ...docs },
  }
}

export function meshRoutes(host: Host): readonly RouteDefinition[] {
  return [
    route(
      'GET',
      '/ha/status',
      { summary: 'Show the gateways of the mesh', responses: ok('The gateways.', StatusSchema) },
      () => host.command(ReadStatus, null),
    ),
    route(
      'GET',
      '/ha/health',
      {
        summary: 'Show whether this gateway is in step with the mesh',
        responses: ok('The gateway serves either way.', HealthSchema),
      },
      () => host.command(ReadHealth, null),
    ),
    route(
      'GET',
      '/ha/workers',
      {
        summary: 'List the workers of the mesh',
        responses: ok('By id.', Type.Array(WorkerStateSchema)),
      },
      () => host.command(ReadWorkers, null),
    ),
    route(
      'GET',
      '/ha/workers/:worker_id',
      {
        summary: 'Show a worker of the mesh',
        params: { worker_id: Type.String() },
        responses: { ...ok('The worker.', WorkerStateSchema), 404: { description: 'No such worker.' } },
      },
      async (ctx) => {
        const id = ctx.param('worker_id')
        const worker = (await host.command(ReadWorkers, null)).find((one) => one.worker_id === id)
        if (worker === undefined) throw meshErrors.unknown_worker(id)
        return worker
      },
    ),
    route(
      'GET',
      '/ha/policies',
      {
        summary: 'List the balancing policies by model',
        responses: ok('By model.', Type.Array(PolicyStateSchema)),
      },
      () => host.command(ReadPolicies, null),
    ),
    route(
      'GET',
      '/ha/policies/:model_id',
      {
        summary: 'Show the balancing policy of a model',
        params: { model_id: Type.String({ description: 'Percent-encoded.' }) },
        responses: { ...ok('The policy.', PolicyStateSchema), 404: { description: 'No worker serves it.' } },
      },
      async (ctx) => {
        const model = ctx.param('model_id')
        const policy = (await host.command(ReadPolicies, null)).find((one) => one.model_id === model)
        if (policy === undefined) throw meshErrors.policy_not_found(model)
        return policy
      },
    ),
    route(
      'POST',
      '/ha/config',
      {
        summary: 'Store a value under a key for all gateways',
        body: ConfigEntrySchema,
        responses: {
          ...ok('Stored.', ConfigUpdatedSchema),
          400: invalid,
          503: unavailable,
          507: { description: 'The mesh has as many keys, or bytes of values, as it takes.' },
        },
      },
      async (ctx) => {
        const body = ctx.bodyJson()
        const { key, value } = configEntry.parse(body)
        warnOfUnread(ctx, body, knownMembers(ConfigEntrySchema))
        if (key === RESERVED_KEY) throw meshErrors.reserved_config_key(key)
        await host.command(WriteConfigKey, { key, value: readHex(value) })
        return { status: 'updated', key }
      },
    ),
    route(
      'GET',
      '/ha/config/:key',
      {
        summary: 'Read a value of the mesh',
        params: { key: Type.String({ description: 'Percent-encoded.' }) },
        responses: { ...ok('The value.', ConfigValueSchema), 404: { description: 'No such key.' } },
      },
      async (ctx) => {
        const key = ctx.param('key')
        const value = await host.command(ReadConfigKey, key)
        if (value === undefined) throw meshErrors.unknown_config_key(key)
        return { key, value, format: 'hex' }
      },
    ),
    route(
      'POST',
      '/ha/rate-limit',
      {
        summary: 'Limit the requests per second of all gateways together',
        body: RateLimitSchema,
        responses: {
          ...ok('Set.', RateLimitUpdatedSchema),
          400: invalid,
          503: { description: `${unavailable.description} Or ${notEnforced.description}` },
        },
      },
      async (ctx) => {
        const body = ctx.bodyJson()
        const { limit_per_second } = rateLimit.parse(body)
        warnOfUnread(ctx, body, knownMembers(RateLimitSchema))
        await host.command(SetGlobalRate, limit_per_second)
        return { status: 'updated', limit_per_second }
      },
    ),
    route(
      'GET',
      '/ha/rate-limit',
      {
        summary: 'Show the global rate limit',
        responses: {
          ...ok('The limit.', RateLimitSchema),
          404: { description: 'It was never set.' },
          503: notEnforced,
        },
      },
      async () => {
        const { limitPerSecond } = await host.command(ReadGlobalRate, null)
        if (limitPerSecond === null) throw meshErrors.rate_limit_unset()
        return { limit_per_second: limitPerSecond }
      },
    ),
    route(
      'GET',
      '/ha/rate-limit/stats',
      {
        summary: 'Show the use of the global rate limit',
        responses: { ...ok('Of the current second.', RateLimitStatsSchema), 503: notEnforced },
      },
      async () => {
        const { limitPerSecond, count } = await host.command(ReadGlobalRate, null)
        const limit = limitPerSecond ?? 0
        const remaining = limit === 0 ? -1 : Math.max(0, limit - count)
        return { limit_per_second: limit, current_count: count, remaining }
      },
    ),
    route(
      'POST',
      '/ha/shutdown',
      {
        summary: 'Leave the mesh, finish running requests and end this gateway',
        responses: { 202: { description: 'Continues in the background.', schema: ShutdownSchema } },
      },
      async () => {
        await host.command(LeaveMesh, null)
        return { status: 'shutdown initiated' }
      },
      202,
    ),
    route(
      'POST',
      '/ha/restore',
      {
        summary: 'Write records and module bytes of this gateway into a mesh engine that has lost data',
        responses: { ...ok('Restored.', RestoredSchema), 503: unavailable },
      },
      async () => {
        const { records, blobs } = await host.command(RestoreMesh, null)
        return { status: 'restored', records, modules: blobs }
      },
    ),
    route(
      'POST',
      '/ha/accept',
      {
        summary:
          'Take the records of a mesh engine that has lost data, and discard what only this gateway has',
        responses: {
          ...ok('Accepted.', AcceptedSchema),
          503: { description: 'The mesh engine is unreachable; nothing was changed.' },
        },
      },
      async () => {
        await host.command(AcceptEngine, null)
        return { status: 'accepted' }
      },
    ),
  ]
}

/** @returns lower-case hexadecimal. @throws invalid_hex */
function readHex(text: string): string {
  if (text.length % 2 !== 0)
    throw meshErrors.invalid_hex(`must have an even number of digits (got ${text.length})`)
  if (!/^[0-9a-fA-F]*$/.test(text)) throw meshErrors.invalid_hex('must have hexadecimal digits only')
  if (text.length > MAX_VALUE_BYTES * 2)
    throw meshErrors.invalid_hex(`must have at most ${MAX_VALUE_BYTES} bytes (got ${text.length / 2})`)
  return text.toLowerCase()
}
