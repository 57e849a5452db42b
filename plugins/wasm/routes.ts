/** The /wasm routes, which send commands to control. */
import { adminErrorFormat, type Host, type RequestContext, type RouteDefinition, Type } from '#kernel'
import { isUuid, knownMembers, warnOfUnread } from '#shared'
import { wasmErrors } from './errors.ts'
import { tenantOf } from './hooks/phase-message.ts'
import { RecordExchanges, RecordingSchema } from './recording/recording.ts'
import {
  ChangeModule,
  type ChangeResult,
  ListModules,
  RegisterModules,
  ReplaceModule,
  type Requester,
} from './registry/thread-commands.ts'
import { UploadModule, UploadSchema } from './sources/module-uploads.ts'
import { ModuleLogSchema, ReadLines } from './statistics/module-logs.ts'
import {
  ModuleChangeResponseSchema,
  ModuleChangeSchema,
  ModuleListSchema,
  RegistrationResponseSchema,
  RegistrationSchema,
} from './wire.ts'

const base = { access: 'admin', errors: adminErrorFormat, endpoint: 'wasm' } as const
const tag = 'WASM modules'
const plainText = { contentType: 'text/plain', schema: Type.String() }
const unavailable = { 503: { description: 'Modules are shared, and the mesh cannot be changed now.' } }

export function wasmRoutes(host: Host): readonly RouteDefinition[] {
  return [
    {
      ...base,
      method: 'POST',
      path: '/wasm',
      handler: (ctx) => register(host, ctx),
      docs: {
        summary: 'Register middleware modules',
        tag,
        body: RegistrationSchema,
        responses: {
          200: { description: 'All modules are registered and active.', schema: RegistrationResponseSchema },
          400: {
            description: 'Invalid body, or at least one module was rejected; see add_result.',
            schema: RegistrationResponseSchema,
          },
          ...unavailable,
        },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/wasm',
      handler: async (ctx) => {
        const isFull = ctx.queryParam('detail') === 'full'
        ctx.json(200, await host.command(ListModules, { isFull }))
      },
      docs: {
        summary: 'List modules with call statistics; detail=full adds fuel, failures and versions',
        tag,
        query: { detail: Type.Optional(Type.Enum(['full'])) },
        responses: { 200: { description: 'In order of registration.', schema: ModuleListSchema } },
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/wasm/files',
      handler: async (ctx) => ctx.json(200, await host.command(UploadModule, new Uint8Array(ctx.bodyBytes))),
      docs: {
        summary: 'Upload a module file as the body, to register it with `file_path: upload://NAME`',
        tag,
        responses: {
          200: {
            description: 'Kept for ten minutes; the last four uploads, and those of registered modules.',
            schema: UploadSchema,
          },
          400: { description: 'The body is not a WebAssembly module.' },
          403: { description: 'Uploads are disabled.' },
          413: { description: 'The file is larger than plugins.wasm.maxFileBytes.' },
        },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/wasm/:module_uuid/logs',
      handler: async (ctx) => {
        // Sessions of role user read the other routes; log lines may contain parts of requests.
        if (ctx.identity?.role === 'user') throw wasmErrors.module_log_forbidden()
        const uuid = ctx.param('module_uuid')
        const log = await host.command(ReadLines, uuid.toLowerCase())
        if (log === null) throw wasmErrors.module_not_found(uuid)
        ctx.json(200, log)
      },
      docs: {
        summary: 'Show the latest log lines and failures of a module, which it has had on this gateway',
        tag,
        responses: {
          200: { description: 'The lines. They contain what the module logs.', schema: ModuleLogSchema },
          403: { description: 'The role is not admin.' },
          404: { description: 'No such module.' },
        },
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/wasm/record',
      handler: (ctx) => record(host, ctx),
      docs: {
        summary: 'Record module inputs of live requests as steps of test cases',
        tag,
        body: RecordingSchema,
        responses: {
          200: {
            description: 'When the requested number is reached or the time is over.',
            schema: RecordedSchema,
          },
          400: { description: 'Invalid body, or recording is disabled.', ...plainText },
        },
      },
    },
    {
      ...base,
      method: 'PUT',
      path: '/wasm/:module_uuid',
      handler: (ctx) =>
        change(ctx, (uuid, requester) =>
          host.command(ReplaceModule, { uuid, body: ctx.bodyJson(), requester }),
        ),
      docs: {
        summary: 'Replace a module by a new version, or start a trial of it',
        tag,
        body: ModuleChangeSchema,
        responses: {
          200: {
            description: 'Active on every thread; streams in progress finish on the old version.',
            schema: ModuleChangeResponseSchema,
          },
          400: {
            description: 'Invalid body, no such module, or the new version was rejected.',
            ...plainText,
          },
          ...unavailable,
        },
      },
    },
    changeRoute(host, 'promote', 'Make the version on trial the current one', {
      200: 'The trial version is current.',
      400: 'No such module, or it is not on trial.',
    }),
    changeRoute(host, 'rollback', 'End a trial, or return to the earlier version', {
      200: 'The earlier version is active.',
      400: 'No such module, or no earlier version.',
    }),
    {
      ...base,
      method: 'DELETE',
      path: '/wasm/:module_uuid',
      handler: async (ctx) => {
        const result = await changed(ctx, (uuid, requester) =>
          host.command(ChangeModule, { uuid, action: 'remove', requester }),
        )
        ctx.text(result.uuid === null ? 400 : 200, result.text)
      },
      docs: {
        summary: 'Remove a module; calls in progress finish',
        tag,
        responses: {
          200: { description: 'Removed.', ...plainText },
          400: { description: 'No such module, or not a uuid.', ...plainText },
          ...unavailable,
        },
      },
    },
  ]
}

function changeRoute(
  host: Host,
  action: 'promote' | 'rollback',
  summary: string,
  descriptions: { 200: string; 400: string },
): RouteDefinition {
  return {
    ...base,
    method: 'POST',
    path: `/wasm/:module_uuid/${action}`,
    handler: (ctx) =>
      change(ctx, (uuid, requester) => host.command(ChangeModule, { uuid, action, requester })),
    docs: {
      summary,
      tag,
      responses: {
        200: { description: descriptions[200], schema: ModuleChangeResponseSchema },
        400: { description: descriptions[400], ...plainText },
        ...unavailable,
      },
    },
  }
}

const RecordedSchema = Type.Object({
  steps: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: 'Steps without expectations, in order of arrival.',
  }),
})

async function record(host: Host, ctx: RequestContext): Promise<void> {
  const result = await host.command(RecordExchanges, ctx.bodyJson())
  if ('refusal' in result) ctx.text(400, result.refusal)
  else ctx.json(200, result)
}

async function register(host: Host, ctx: RequestContext): Promise<void> {
  const body = ctx.bodyJson()
  const results = await host.command(RegisterModules, { body, requester: requesterOf(ctx) })
  warnOfUnread(ctx, body, knownMembers(RegistrationSchema))
  // Validated by the command.
  const { modules } = body as { modules: Record<string, unknown>[] }
  const echoed = modules.map((module, index) => {
    const { config: _secret, add_result: _theirs, ...shown } = module
    return { ...shown, add_result: results[index] }
  })
  const isWhole = results.every((result) => 'Success' in result)
  ctx.json(isWhole ? 200 : 400, { modules: echoed })
}

type Act = (uuid: string, requester: Requester) => Promise<ChangeResult>

async function changed(ctx: RequestContext, act: Act): Promise<ChangeResult> {
  const uuid = ctx.param('module_uuid')
  if (!isUuid(uuid)) return { uuid: null, text: 'invalid module uuid' }
  return act(uuid.toLowerCase(), requesterOf(ctx))
}

async function change(ctx: RequestContext, act: Act): Promise<void> {
  const { uuid, text } = await changed(ctx, act)
  if (uuid === null) ctx.text(400, text)
  else ctx.json(200, { module_uuid: uuid, message: text })
}

function requesterOf(ctx: RequestContext): Requester {
  return { principal: tenantOf(ctx), requestId: ctx.requestId }
}
