/** The /ha routes: state of the mesh, its configuration keys, the global rate limit, and leaving it. */
import { defineValidator, type Host, type RequestContext, type RouteDefinition, Type } from '#kernel'
import {
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
import { meshErrorFormat, routeErrors } from './route-errors.ts'
import {
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

const base = { access: 'admin', errors: meshErrorFormat, endpoint: 'mesh' } as const
const tag = 'Mesh'
const invalid = { description: 'Invalid body; nothing was changed.' }
const unavailable = { description: 'The mesh engine is unreachable or has lost data; nothing was changed.' }
const notEnforced = { description: '`plugins.limits` is `false`.' }
const ok = (description: string, schema: NonNullable<RouteDefinition['docs']>['body']) => ({
  200: { description, schema },
})

export function meshRoutes(host: Host): readonly RouteDefinition[] {
  const send = (ctx: RequestContext, status: number, body: unknown) => ctx.json(status, body, NOT_STORED)
  return [
    {
      ...base,
      method: 'GET',
      path: '/ha/status',
      handler: async (ctx) => send(ctx, 200, await host.command(ReadStatus, null)),
      docs: { summary: 'Show the gateways of the mesh', tag, responses: ok('The gateways.', StatusSchema) },
    },
    {
      ...base,
      method: 'GET',
      path: '/ha/health',
      handler: async (ctx) => {
        const { name, size, problem } = await host.command(ReadHealth, null)
        send(ctx, 200, {
          status: problem === null ? 'healthy' : 'degraded',
          node_name: name,
          cluster_size: size,
          stores_healthy: problem === null,
          problem,
        })
      },
      docs: {
        summary: 'Show whether this gateway is in step with the mesh',
        tag,
        responses: ok('The gateway serves either way.', HealthSchema),
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/ha/workers',
      handler: async (ctx) => send(ctx, 200, await host.command(ReadWorkers, null)),
      docs: {
        summary: 'List the workers of the mesh',
        tag,
        responses: ok('By id.', Type.Array(WorkerStateSchema)),
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/ha/workers/:worker_id',
      handler: async (ctx) => {
        const id = ctx.param('worker_id')
        const worker = (await host.command(ReadWorkers, null)).find((one) => one.worker_id === id)
        if (worker === undefined) throw routeErrors.unknown_worker(id)
        send(ctx, 200, worker)
      },
      docs: {
        summary: 'Show a worker of the mesh',
        tag,
        params: { worker_id: Type.String() },
        responses: { ...ok('The worker.', WorkerStateSchema), 404: { description: 'No such worker.' } },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/ha/policies',
      handler: async (ctx) => send(ctx, 200, await host.command(ReadPolicies, null)),
      docs: {
        summary: 'List the balancing policies by model',
        tag,
        responses: ok('By model.', Type.Array(PolicyStateSchema)),
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/ha/policies/:model_id',
      handler: async (ctx) => {
        const model = ctx.param('model_id')
        const policy = (await host.command(ReadPolicies, null)).find((one) => one.model_id === model)
        if (policy === undefined) throw routeErrors.policy_not_found(model)
        send(ctx, 200, policy)
      },
      docs: {
        summary: 'Show the balancing policy of a model',
        tag,
        params: { model_id: Type.String({ description: 'Percent-encoded.' }) },
        responses: { ...ok('The policy.', PolicyStateSchema), 404: { description: 'No worker serves it.' } },
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/ha/config',
      handler: async (ctx) => {
        const { key, value } = configEntry.parse(ctx.bodyJson())
        if (key === RESERVED_KEY) throw routeErrors.reserved_config_key(key)
        await host.command(WriteConfigKey, { key, value: readHex(value) })
        send(ctx, 200, { status: 'updated', key })
      },
      docs: {
        summary: 'Store a value under a key for all gateways',
        tag,
        body: ConfigEntrySchema,
        responses: {
          ...ok('Stored.', ConfigUpdatedSchema),
          400: invalid,
          503: unavailable,
          507: { description: 'The mesh has as many keys, or bytes of values, as it takes.' },
        },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/ha/config/:key',
      handler: async (ctx) => {
        const key = ctx.param('key')
        const value = await host.command(ReadConfigKey, key)
        if (value === undefined) throw routeErrors.unknown_config_key(key)
        send(ctx, 200, { key, value, format: 'hex' })
      },
      docs: {
        summary: 'Read a value of the mesh',
        tag,
        params: { key: Type.String({ description: 'Percent-encoded.' }) },
        responses: { ...ok('The value.', ConfigValueSchema), 404: { description: 'No such key.' } },
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/ha/rate-limit',
      handler: async (ctx) => {
        const { limit_per_second } = rateLimit.parse(ctx.bodyJson())
        await host.command(SetGlobalRate, limit_per_second)
        send(ctx, 200, { status: 'updated', limit_per_second })
      },
      docs: {
        summary: 'Limit the requests per second of all gateways together',
        tag,
        body: RateLimitSchema,
        responses: {
          ...ok('Set.', RateLimitUpdatedSchema),
          400: invalid,
          503: { description: `${unavailable.description} Or ${notEnforced.description}` },
        },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/ha/rate-limit',
      handler: async (ctx) => {
        const { limitPerSecond } = await host.command(ReadGlobalRate, null)
        if (limitPerSecond === null) throw routeErrors.rate_limit_unset()
        send(ctx, 200, { limit_per_second: limitPerSecond })
      },
      docs: {
        summary: 'Show the global rate limit',
        tag,
        responses: {
          ...ok('The limit.', RateLimitSchema),
          404: { description: 'It was never set.' },
          503: notEnforced,
        },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/ha/rate-limit/stats',
      handler: async (ctx) => {
        const { limitPerSecond, count } = await host.command(ReadGlobalRate, null)
        const limit = limitPerSecond ?? 0
        const remaining = limit === 0 ? -1 : Math.max(0, limit - count)
        send(ctx, 200, { limit_per_second: limit, current_count: count, remaining })
      },
      docs: {
        summary: 'Show the use of the global rate limit',
        tag,
        responses: { ...ok('Of the current second.', RateLimitStatsSchema), 503: notEnforced },
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/ha/shutdown',
      handler: async (ctx) => {
        await host.command(LeaveMesh, null)
        send(ctx, 202, { status: 'shutdown initiated' })
      },
      docs: {
        summary: 'Leave the mesh, finish running requests and end this gateway',
        tag,
        responses: { 202: { description: 'Continues in the background.', schema: ShutdownSchema } },
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/ha/restore',
      handler: async (ctx) => {
        const { records, blobs } = await host.command(RestoreMesh, null)
        send(ctx, 200, { status: 'restored', records, modules: blobs })
      },
      docs: {
        summary: 'Write records and module bytes of this gateway into a mesh engine that has lost data',
        tag,
        responses: { ...ok('Restored.', RestoredSchema), 503: unavailable },
      },
    },
  ]
}

/** @returns lower-case hexadecimal. @throws invalid_hex */
function readHex(text: string): string {
  if (text.length % 2 !== 0)
    throw routeErrors.invalid_hex(`must have an even number of digits (got ${text.length})`)
  if (!/^[0-9a-fA-F]*$/.test(text)) throw routeErrors.invalid_hex('must have hexadecimal digits only')
  if (text.length > MAX_VALUE_BYTES * 2)
    throw routeErrors.invalid_hex(`must have at most ${MAX_VALUE_BYTES} bytes (got ${text.length / 2})`)
  return text.toLowerCase()
}
