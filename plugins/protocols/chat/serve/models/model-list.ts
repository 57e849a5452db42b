/** GET /v1/models: the registered models, or those that an external service lists for a client's own key. */
import {
  type AuthService,
  isObject,
  type RequestContext,
  type WorkerControls,
  type WorkerEntry,
} from '#kernel'
import { isSecureUrl } from '#shared'
import { chatErrors } from '../../errors.ts'
import type { ModelEntry } from '../../wire/models.ts'

/** Largest date in seconds. @source ECMAScript, time values */
const MAX_SECONDS = 8_640_000_000_000

/** A client's credential that is not one of the gateway's, with its header. */
interface ForeignCredential {
  readonly name: 'authorization' | 'x-api-key'
  readonly value: string
}

export interface ModelListSources {
  readonly controls: Pick<WorkerControls, 'call'>
  readonly workers: readonly WorkerEntry[]
  /** Names of virtual models. */
  readonly virtualModels: readonly string[]
  isReady(worker: WorkerEntry): boolean
  /** Null if no auth plugin is enabled: keys of the gateway cannot be recognized then, and none is sent to a service. */
  readonly auth: AuthService | null
  /** Hosts that may get a client's own key. */
  readonly callerKeyHosts: readonly string[]
  /** For each external worker, in milliseconds. */
  readonly timeoutMs: number
}

/** @throws no_models (503) if there is no model */
export async function listModels(
  ctx: Pick<RequestContext, 'header'>,
  sources: ModelListSources,
): Promise<readonly ModelEntry[]> {
  const credential = foreignCredential(ctx, sources.auth)
  if (credential !== null) {
    const listed = await askExternal(credential, sources)
    if (listed.length > 0) return listed
  }
  const models = withVirtualModels(registeredModels(sources.workers), sources.virtualModels)
  if (models.length === 0) throw chatErrors.no_models()
  return models
}

/** Models of all workers, healthy or not; the first entry of an id wins. */
export function registeredModels(workers: readonly WorkerEntry[]): ModelEntry[] {
  const entries = new Map<string, ModelEntry>()
  for (const worker of workers) {
    for (const model of worker.models) {
      if (entries.has(model.id)) continue
      const owner = typeof model.provider === 'string' ? model.provider : ownerOf(worker)
      const { id, created, context_length: max_model_len, aliases } = model
      entries.set(id, {
        id,
        object: 'model',
        created: isTime(created) ? created : 0,
        owned_by: owner,
        ...(max_model_len !== undefined && { max_model_len }),
        ...(aliases !== undefined && { aliases: [...aliases] }),
      })
    }
  }
  return [...entries.values()]
}

function withVirtualModels(models: readonly ModelEntry[], names: readonly string[]): readonly ModelEntry[] {
  const known = new Set(models.map(({ id }) => id))
  const added = names.filter((name) => !known.has(name))
  return [...models, ...added.map((id) => ({ id, object: 'model' as const, created: 0, owned_by: 'weir' }))]
}

function ownerOf({ isExternal, provider }: WorkerEntry): string {
  return isExternal ? (provider ?? 'external') : 'self_hosted'
}

/**
 * The client's credential if it is not one of the gateway's. With a gateway key in either header, neither is sent to a
 * service. The scheme is case-insensitive.
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

/** The first list with a model; empty if there is none. */
async function askExternal(credential: ForeignCredential, sources: ModelListSources): Promise<ModelEntry[]> {
  const external = sources.workers.filter(
    (worker) =>
      worker.isExternal && mayGetCallerKey(worker.url, sources.callerKeyHosts) && sources.isReady(worker),
  )
  const lists = external.map((worker) => fetchList(worker, credential, sources))
  return Promise.any(lists).catch(() => [])
}

/** Registering a worker must not give access to the keys of clients. */
function mayGetCallerKey(url: string, hosts: readonly string[]): boolean {
  const target = URL.parse(url)
  return target !== null && hosts.includes(target.hostname) && isSecureUrl(target)
}

async function fetchList(
  worker: WorkerEntry,
  credential: ForeignCredential,
  { controls, timeoutMs }: ModelListSources,
): Promise<ModelEntry[]> {
  // The client's key replaces the worker's own.
  const target = { url: worker.url, apiKey: null }
  const headers = [credential.name, credential.value]
  const response = await controls.call(target, { method: 'GET', path: '/v1/models', headers, timeoutMs })
  if (response.status !== 200) throw new Error(`status ${response.status}`)
  const models = readList(response.json(), worker)
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
    owned_by: typeof owned_by === 'string' ? owned_by : ownerOf(worker),
  }))
}

/** Seconds that are a valid date. */
function isTime(value: unknown): value is number {
  return Number.isInteger(value) && Math.abs(value as number) <= MAX_SECONDS
}

function hasId(value: unknown): value is { id: string; created?: unknown; owned_by?: unknown } {
  return isObject(value) && typeof value.id === 'string'
}
