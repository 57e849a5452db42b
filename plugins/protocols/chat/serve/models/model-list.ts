/** GET /v1/models: what the registry serves, or what an external provider lists for a caller with its own key. */

import type { AuthService, RequestContext, WorkerControls, WorkerEntry } from '#kernel'
import { isPrivateWay } from '#shared'
import { chatErrors } from '../../errors.ts'
import type { ModelEntry } from '../../wire/models.ts'

/** Dates end there. @source ECMAScript, time values */
const MAX_SECONDS = 8_640_000_000_000

/** A credential of the caller's own, as the header it came in. */
interface ForeignCredential {
  readonly name: 'authorization' | 'x-api-key'
  readonly value: string
}

export interface ModelListSources {
  readonly controls: Pick<WorkerControls, 'call'>
  readonly workers: readonly WorkerEntry[]
  isReady(worker: WorkerEntry): boolean
  /** Null when no auth plugin is enabled: then nobody can say whose a key is, and none leaves. */
  readonly auth: AuthService | null
  /** Where a caller's own key may go. */
  readonly callerKeyHosts: readonly string[]
  /** For each external worker, in milliseconds. */
  readonly timeoutMs: number
}

/** @throws no_models (503) when there is nothing to list. */
export async function listModels(
  ctx: Pick<RequestContext, 'header'>,
  sources: ModelListSources,
): Promise<ModelEntry[]> {
  const credential = foreignCredential(ctx, sources.auth)
  if (credential !== null) {
    const listed = await askExternal(credential, sources)
    if (listed.length > 0) return listed
  }
  const models = registeredModels(sources.workers)
  if (models.length === 0) throw chatErrors.no_models()
  return models
}

/** Models of all but external workers, healthy or not; the first card of an id wins. */
export function registeredModels(workers: readonly WorkerEntry[]): ModelEntry[] {
  const entries = new Map<string, ModelEntry>()
  for (const worker of workers) {
    if (worker.isExternal) continue
    for (const card of worker.models) {
      if (entries.has(card.id)) continue
      const owner = typeof card.provider === 'string' ? card.provider : 'self_hosted'
      entries.set(card.id, { id: card.id, object: 'model', created: 0, owned_by: owner })
    }
  }
  return [...entries.values()]
}

/**
 * The caller's credential when it is certainly not one of the gateway's. One gateway key in either header keeps
 * both at home. The scheme word is read in any case here.
 */
function foreignCredential(
  ctx: Pick<RequestContext, 'header'>,
  auth: AuthService | null,
): ForeignCredential | null {
  if (auth === null) return null
  const authorization = ctx.header('authorization')
  const apiKey = ctx.header('x-api-key')
  if (authorization !== undefined && auth.isGatewayKey(authorization)) return null
  if (apiKey !== undefined && auth.isGatewayKey(`Bearer ${apiKey}`)) return null
  const token = authorization === undefined ? undefined : /^bearer (.*)$/i.exec(authorization)?.[1].trim()
  if (token) return { name: 'authorization', value: `Bearer ${token}` }
  return apiKey ? { name: 'x-api-key', value: apiKey } : null
}

/** The first list to arrive with anything in it; empty when none does. */
async function askExternal(credential: ForeignCredential, sources: ModelListSources): Promise<ModelEntry[]> {
  const external = sources.workers.filter(
    (worker) =>
      worker.isExternal && mayGetCallerKey(worker.url, sources.callerKeyHosts) && sources.isReady(worker),
  )
  const asked = external.map((worker) => askOne(worker, credential, sources))
  return Promise.any(asked).catch(() => [])
}

/** Whoever may register workers must not have the keys of callers by it. */
function mayGetCallerKey(url: string, hosts: readonly string[]): boolean {
  const target = URL.parse(url)
  return target !== null && hosts.includes(target.hostname) && isPrivateWay(target)
}

async function askOne(
  worker: WorkerEntry,
  credential: ForeignCredential,
  { controls, timeoutMs }: ModelListSources,
): Promise<ModelEntry[]> {
  // The caller's key stands in for the worker's own, which is not theirs to use.
  const target = { url: worker.url, apiKey: null }
  const headers = [credential.name, credential.value]
  const reply = await controls.call(target, { method: 'GET', path: '/v1/models', headers, timeoutMs })
  if (reply.status !== 200) throw new Error(`status ${reply.status}`)
  const models = readList(reply.json(), worker)
  if (models.length === 0) throw new Error('an empty list')
  return models
}

function readList(value: unknown, worker: WorkerEntry): ModelEntry[] {
  const data = isObject(value) ? value.data : null
  if (!Array.isArray(data)) return []
  return data.filter(hasId).map(({ id, created, owned_by }) => ({
    id,
    object: 'model',
    created: isTime(created) ? created : 0,
    owned_by: typeof owned_by === 'string' ? owned_by : (worker.provider ?? 'external'),
  }))
}

/** Seconds that make a date, so that who shows it as one can. */
function isTime(value: unknown): value is number {
  return Number.isInteger(value) && Math.abs(value as number) <= MAX_SECONDS
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function hasId(value: unknown): value is { id: string; created?: unknown; owned_by?: unknown } {
  return isObject(value) && typeof value.id === 'string'
}
