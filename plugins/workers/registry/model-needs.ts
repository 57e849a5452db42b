/**
 * A data thread's part of finding out what cloud services serve: a request that names a model which no worker lists waits,
 * once, until control has asked them. Costs nothing while there is no such service.
 */
import {
  Auth,
  type AuthService,
  type Host,
  type RequestContext,
  type RouteDefinition,
  type WorkerEntry,
  WorkerTableReplica,
} from '#kernel'
import type { CallerKey } from './model-inquiries.ts'
import { LearnModels } from './thread-commands.ts'

/** As in requests that name no model. */
const ANY_MODEL = 'unknown'
/** Control's answer takes as long as the slowest service may. */
const WAIT_MS = 8_000

export function watchModelNeeds(host: Host): void {
  const auth = host.find(Auth)
  // Nobody could say whose a key is, so none leaves.
  if (auth === undefined || auth === null) return
  const table = host.replica(WorkerTableReplica)
  let listed: ReadonlySet<string> = new Set()
  const hook = host.hook(
    'onRequest',
    async (ctx) => {
      const model = modelOf(ctx)
      if (model === null || listed.has(model)) return
      const credential = callerKey(ctx, auth)
      if (credential === null) return
      await host.command(LearnModels, { model, credential }).catch((err: unknown) => {
        host.log.debug({ err, request_id: ctx.requestId }, 'no models were learnt')
      })
    },
    { scope: 'all', startsOff: true, timeoutMs: WAIT_MS, routes: servesModels },
  )
  const look = (workers: readonly WorkerEntry[]) => {
    const isOn = workers.some((worker) => worker.isExternal && worker.apiKey === null)
    if (isOn) listed = new Set(workers.flatMap(namesOf))
    hook.update({ isOn })
  }
  look(table.current.workers)
  table.onChange(({ workers }) => look(workers))
}

function servesModels({ access, method }: RouteDefinition): boolean {
  return access === 'api' && method === 'POST'
}

function namesOf({ models }: WorkerEntry): string[] {
  return models.flatMap(({ id, aliases = [] }) => [id, ...aliases])
}

/** Null where none is named, or where the body is none: that is for the handler to say. */
function modelOf(ctx: RequestContext): string | null {
  try {
    const { model } = ctx.peek()
    return model === ANY_MODEL ? null : model
  } catch {
    return null
  }
}

/** A key that is certainly not one of the gateway's. */
function callerKey(ctx: RequestContext, auth: AuthService): CallerKey | null {
  const authorization = ctx.header('authorization')
  const apiKey = ctx.header('x-api-key')
  if (authorization !== undefined && auth.isGatewayKey(authorization)) return null
  if (apiKey !== undefined && auth.isGatewayKey(`Bearer ${apiKey}`)) return null
  if (apiKey) return { header: 'x-api-key', key: apiKey }
  const key = authorization === undefined ? undefined : /^bearer ([^ ]+)$/i.exec(authorization)?.[1]
  return key === undefined ? null : { header: 'authorization', key }
}
