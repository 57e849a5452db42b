/** The public routes about models and servers: what comes in and goes out. */
import {
  Auth,
  apiErrorFormat,
  type Host,
  parseBoundedJson,
  type RequestContext,
  type RouteDefinition,
  type WorkerEntry,
} from '#kernel'
import type { ProxyConfig } from './config.ts'
import { proxyErrors } from './errors.ts'
import { listModels } from './model-list.ts'
import { ModelEntry, ModelInfo, ModelList, ServerInfo } from './wire/models.ts'
import { withModelInfo, withServerInfo } from './worker-info.ts'

const TAG = 'Models'
const MAX_SHOWN_ID = 200

const LISTED = { access: 'public', errors: apiErrorFormat, headers: ['authorization', 'x-api-key'] } as const

function listed(host: Host, config: ProxyConfig, ctx: RequestContext): Promise<ModelEntry[]> {
  return listModels(ctx, {
    upstream: host.upstream,
    workers: host.balance.workers,
    isReady: ({ slot }) => host.balance.status(slot) === 'ready',
    auth: host.find(Auth) ?? null,
    callerKeyHosts: config.callerKeyHosts,
    timeoutMs: config.modelListMs,
  })
}

export function modelsRoute(host: Host, config: ProxyConfig): RouteDefinition {
  return {
    ...LISTED,
    method: 'GET',
    path: '/v1/models',
    handler: async (ctx) => ctx.json(200, { object: 'list', data: await listed(host, config, ctx) }),
    docs: {
      summary: 'List the models that are served',
      tag: TAG,
      responses: {
        200: { description: 'Models of all registered workers.', schema: ModelList },
        503: { description: 'No worker names a model.' },
      },
    },
  }
}

/** Ids may hold a slash, which some clients send as it is. */
export function modelRoutes(host: Host, config: ProxyConfig): RouteDefinition[] {
  return ['/v1/models/:model', '/v1/models/:owner/:model'].map((path) => ({
    ...LISTED,
    method: 'GET',
    path,
    async handler(ctx) {
      const owner = ctx.param('owner')
      const id = owner === '' ? ctx.param('model') : `${owner}/${ctx.param('model')}`
      const canonical = host.balance.canonicalModel(id)
      const models = await listed(host, config, ctx)
      const found = models.find((model) => model.id === id) ?? models.find((model) => model.id === canonical)
      if (found === undefined)
        throw proxyErrors.model_not_found.with({ param: 'model' }, id.slice(0, MAX_SHOWN_ID))
      ctx.json(200, found)
    },
    docs: {
      summary: 'Show one model',
      tag: TAG,
      responses: {
        200: { description: 'The model.', schema: ModelEntry },
        404: { description: 'No worker names the model.' },
        503: { description: 'No worker names a model.' },
      },
    },
  }))
}

/** The first ready worker answers, whatever the balancing policy would pick. */
export function infoRoutes(host: Host): RouteDefinition[] {
  const askFirst = (ctx: RequestContext, complete: Complete) => askFirstReady(host, ctx, complete)
  return [
    {
      method: 'GET',
      path: '/get_model_info',
      access: 'public',
      errors: apiErrorFormat,
      handler: (ctx) => askFirst(ctx, withModelInfo),
      docs: {
        summary: 'What the first ready worker says of its model',
        tag: TAG,
        responses: { 200: { description: "The worker's answer.", schema: ModelInfo }, ...failures },
      },
    },
    {
      method: 'GET',
      path: '/get_server_info',
      access: 'public',
      errors: apiErrorFormat,
      handler: (ctx) => askFirst(ctx, withServerInfo),
      docs: {
        summary: 'What the first ready worker says of itself',
        tag: TAG,
        responses: { 200: { description: "The worker's answer.", schema: ServerInfo }, ...failures },
      },
    },
  ]
}

type Complete = (info: Record<string, unknown>, worker: WorkerEntry) => Record<string, unknown>

const failures: RouteDefinition['docs']['responses'] = {
  502: { description: 'The worker could not be reached.' },
  503: { description: 'No HTTP worker is ready.' },
  504: { description: 'The worker took too long.' },
}

/** What engines without the route answer; the gateway then tells what it knows of the worker. */
const NO_SUCH_ROUTE = new Set([404, 405, 501])

/** Answers with the worker's object, completed; anything that is not a JSON object passes as it came. */
async function askFirstReady(host: Host, ctx: RequestContext, complete: Complete): Promise<void> {
  const worker = host.balance.firstReady(({ connectionMode }) => connectionMode === 'http')
  if (worker === undefined) throw proxyErrors.no_workers()
  const reply = await host.upstream.collect(ctx, {
    method: 'GET',
    path: ctx.path,
    model: null,
    stream: false,
    worker,
  })
  const info = NO_SUCH_ROUTE.has(reply.status) ? {} : reply.status === 200 ? readObject(reply.body) : null
  if (info === null) ctx.send(reply.status, null, reply.body, reply.clientHeaders())
  else ctx.json(200, complete(info, worker))
}

function readObject(body: Buffer): Record<string, unknown> | null {
  try {
    const value = parseBoundedJson(body)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}
