/** The public routes about models and servers. */
import {
  Auth,
  apiErrorFormat,
  type Host,
  type Identity,
  ModelTargets,
  mayUseModel,
  type RequestContext,
  type RouteDefinition,
  workerControls,
} from '#kernel'
import type { ChatConfig } from '../../config.ts'
import { chatErrors } from '../../errors.ts'
import { ModelEntry, ModelInfo, ModelList, ServerInfo } from '../../wire/models.ts'
import { listModels } from './model-list.ts'
import { withModelInfo, withServerInfo } from './worker-info.ts'

const TAG = 'Models'
const MAX_SHOWN_ID = 200

const LISTED = {
  method: 'GET',
  access: 'public',
  errors: apiErrorFormat,
  headers: ['authorization', 'x-api-key'],
} as const

function listed(host: Host, config: ChatConfig, ctx: RequestContext): Promise<readonly ModelEntry[]> {
  return listModels(ctx, {
    controls: workerControls(host.upstream),
    workers: host.balance.workers,
    virtualModels: host.find(ModelTargets)?.names ?? [],
    isReady: ({ slot }) => host.balance.status(slot) === 'ready',
    auth: host.find(Auth) ?? null,
    callerKeyHosts: config.callerKeyHosts,
    timeoutMs: config.modelListMs,
  })
}

/** Owner of the request's key, whose models alone are listed; null lists all. */
function ownerOf(host: Host, ctx: RequestContext): Identity | null {
  const auth = host.kernelConfig.auth === 'off' ? undefined : host.find(Auth)
  const credentials = { authorization: ctx.header('authorization'), apiKey: ctx.header('x-api-key') }
  return auth?.ownerOf(credentials) ?? null
}

/** The list, and one model of it. Ids may contain a slash, which some clients do not encode. */
export function modelRoutes(host: Host, config: ChatConfig): RouteDefinition[] {
  const none = { 503: { description: 'No worker lists a model.' } }
  const showModel = async (ctx: RequestContext) => {
    const owner = ctx.param('owner')
    const id = owner === '' ? ctx.param('model') : `${owner}/${ctx.param('model')}`
    const canonical = host.balance.canonicalModel(id)
    const models = await listed(host, config, ctx)
    const found = models.find((model) => model.id === id) ?? models.find((model) => model.id === canonical)
    if (found === undefined || !mayUseModel(ownerOf(host, ctx), id))
      throw chatErrors.model_not_found.with({ param: 'model' }, id.slice(0, MAX_SHOWN_ID))
    ctx.json(200, found)
  }
  return [
    {
      ...LISTED,
      path: '/v1/models',
      async handler(ctx) {
        const owner = ownerOf(host, ctx)
        const models = await listed(host, config, ctx)
        ctx.json(200, { object: 'list', data: models.filter(({ id }) => mayUseModel(owner, id)) })
      },
      docs: {
        summary: 'List the served models, with a restricted key those that it may use',
        tag: TAG,
        responses: { 200: { description: 'Models of all registered workers.', schema: ModelList }, ...none },
      },
    },
    ...['/v1/models/:model', '/v1/models/:owner/:model'].map((path) => ({
      ...LISTED,
      path,
      handler: showModel,
      docs: {
        summary: 'Show one model',
        tag: TAG,
        responses: {
          200: { description: 'The model.', schema: ModelEntry },
          404: { description: 'No worker lists the model.' },
          ...none,
        },
      },
    })),
  ]
}

/** Answered by the first ready worker, regardless of the policy. */
export function infoRoutes(host: Host): RouteDefinition[] {
  const schemas = { model: ModelInfo, server: ServerInfo }
  return (['model', 'server'] as const).map((about) => ({
    method: 'GET',
    path: `/get_${about}_info`,
    access: 'public',
    errors: apiErrorFormat,
    handler: (ctx) => askFirstReady(host, ctx, about),
    docs: {
      summary: `${about === 'model' ? 'Model' : 'Server'} info of the first ready worker`,
      tag: TAG,
      responses: { 200: { description: "The worker's response.", schema: schemas[about] }, ...failures },
    },
  }))
}

const COMPLETE = { model: withModelInfo, server: withServerInfo } as const

const failures: RouteDefinition['docs']['responses'] = {
  502: { description: 'The worker could not be reached.' },
  503: { description: 'No worker that provides the info is ready.' },
  504: { description: 'The worker did not respond in time.' },
}

/** Sends the worker's info, completed by what the gateway knows. */
async function askFirstReady(host: Host, ctx: RequestContext, about: 'model' | 'server'): Promise<void> {
  const { kernelConfig } = host
  const controls = workerControls(host.upstream)
  const worker = host.balance.firstReady(
    ({ connectionMode }) => controls.controlOf(connectionMode)?.info !== undefined,
  )
  if (worker === undefined) throw chatErrors.no_workers()
  const timeoutMs = kernelConfig.upstream.headMs || kernelConfig.upstream.requestMs
  const info = await controls.controlOf(worker.connectionMode)?.info?.(worker, about, timeoutMs)
  if (info?.kind !== 'response')
    return ctx.json(200, COMPLETE[about](info?.kind === 'members' ? info.members : {}, worker))
  ctx.send(info.response.status, null, info.response.body, host.upstream.clientHeaders(info.response.headers))
}
