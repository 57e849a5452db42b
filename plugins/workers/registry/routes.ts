/** The worker routes, which send commands to control. */
import { adminErrorFormat, type Host, type RequestContext, type RouteDefinition, Type } from '#kernel'
import { isUuid, knownMembers, warnOfUnread } from '#shared'
import { workerErrors } from './errors.ts'
import {
  type AcceptedChange,
  DiscoverWorker,
  GetWorker,
  ListWorkers,
  PatchWorker,
  RegisterWorker,
  RemoveWorker,
  ReplaceWorker,
} from './thread-commands.ts'
import {
  ChangeAcceptedSchema,
  DiscoverySchema,
  WorkerAcceptedSchema,
  WorkerListSchema,
  WorkerPatchSchema,
  type WorkerQuery,
  WorkerQuerySchema,
  WorkerRecordSchema,
  WorkerSpecSchema,
} from './wire.ts'

const base = { access: 'admin', errors: adminErrorFormat, endpoint: 'workers' } as const
const tag = 'Workers'
const acceptedChange = {
  description: 'Accepted; carried out in the background.',
  schema: ChangeAcceptedSchema,
}
const SPEC_MEMBERS = knownMembers(WorkerSpecSchema)
const PATCH_MEMBERS = knownMembers(WorkerPatchSchema)
const params = { worker_id: Type.String({ format: 'uuid' }) }
const badRequest = { description: 'Invalid id, body or URL.' }
const notFound = { description: 'No such worker.' }
const noTransport = { description: 'The URL needs a plugin that is not enabled.' }
const queueFull = { description: 'Too many changes are waiting.' }

export function workerRoutes(host: Host): readonly RouteDefinition[] {
  return [
    {
      ...base,
      method: 'POST',
      path: '/workers',
      handler: async (ctx) => {
        const body = ctx.bodyJson()
        const { id, url } = await host.command(RegisterWorker, body)
        warnOfUnread(ctx, body, SPEC_MEMBERS)
        const location = `/workers/${id}`
        const message = 'registration accepted; GET the location for its status'
        ctx.json(202, { status: 'accepted', worker_id: id, url, location, message }, ['location', location])
      },
      docs: {
        summary: 'Register a worker',
        tag,
        body: WorkerSpecSchema,
        responses: {
          202: { description: 'Accepted; carried out in the background.', schema: WorkerAcceptedSchema },
          400: badRequest,
          409: { description: 'The URL is registered already.' },
          501: noTransport,
          503: queueFull,
        },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/workers',
      handler: async (ctx) => ctx.json(200, await host.command(ListWorkers, readQuery(ctx))),
      docs: {
        summary: 'List registered workers',
        tag,
        query: WorkerQuerySchema.properties,
        responses: {
          200: { description: 'In order of registration.', schema: WorkerListSchema },
          400: { description: 'A parameter is invalid.' },
        },
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/workers/discover',
      handler: async (ctx) => {
        const body = ctx.bodyJson()
        const found = await host.command(DiscoverWorker, body)
        warnOfUnread(ctx, body, SPEC_MEMBERS)
        ctx.json(200, found)
      },
      docs: {
        summary: 'Show what a registration of a worker would find; nothing is registered',
        tag,
        body: WorkerSpecSchema,
        responses: {
          200: { description: 'What was found.', schema: DiscoverySchema },
          400: badRequest,
          501: noTransport,
          502: { description: 'The engine does not respond, or not as one.' },
        },
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/workers/:worker_id',
      handler: async (ctx) => ctx.json(200, await host.command(GetWorker, workerId(ctx))),
      docs: {
        summary: 'Show a worker and the status of its latest change',
        tag,
        params,
        responses: {
          200: { description: 'The worker.', schema: WorkerRecordSchema },
          400: badRequest,
          404: notFound,
        },
      },
    },
    {
      ...base,
      method: 'PATCH',
      path: '/workers/:worker_id',
      handler: (ctx) => {
        const body = ctx.bodyJson()
        const change = host.command(PatchWorker, { id: workerId(ctx), body })
        warnOfUnread(ctx, body, PATCH_MEMBERS)
        return accept(ctx, change, 'update accepted')
      },
      docs: {
        summary: 'Change single members of a worker',
        tag,
        params,
        body: WorkerPatchSchema,
        responses: { 202: acceptedChange, 400: badRequest, 404: notFound, 503: queueFull },
      },
    },
    {
      ...base,
      method: 'PUT',
      path: '/workers/:worker_id',
      handler: (ctx) => {
        const body = ctx.bodyJson()
        const change = host.command(ReplaceWorker, { id: workerId(ctx), body })
        warnOfUnread(ctx, body, SPEC_MEMBERS)
        return accept(ctx, change, 'replacement accepted')
      },
      docs: {
        summary: 'Replace a worker of the same URL, including discovery',
        tag,
        params,
        body: WorkerSpecSchema,
        responses: { 202: acceptedChange, 400: badRequest, 404: notFound, 503: queueFull },
      },
    },
    {
      ...base,
      method: 'DELETE',
      path: '/workers/:worker_id',
      handler: (ctx) => accept(ctx, host.command(RemoveWorker, workerId(ctx)), 'removal accepted'),
      docs: {
        summary: 'Remove a worker; running requests finish',
        tag,
        params,
        responses: { 202: acceptedChange, 400: badRequest, 404: notFound, 503: queueFull },
      },
    },
  ]
}

function readQuery(ctx: RequestContext): WorkerQuery {
  const read = (param: string) => ctx.queryParam(param) || null
  const limit = read('limit')
  return {
    model: read('model'),
    q: read('q'),
    state: read('state') as WorkerQuery['state'],
    after: read('after'),
    limit: limit === null ? null : Number(limit),
  }
}

/** @throws invalid_worker_id (400) */
function workerId(ctx: RequestContext): string {
  const id = ctx.param('worker_id')
  if (!isUuid(id)) throw workerErrors.invalid_worker_id(id)
  return id.toLowerCase()
}

async function accept(ctx: RequestContext, change: Promise<AcceptedChange>, what: string): Promise<void> {
  const { id } = await change
  ctx.json(202, { status: 'accepted', worker_id: id, message: `${what}; GET the worker for its status` })
}
