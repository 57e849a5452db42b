/**
 * Discovers the models of cloud services that have no key of their own, with the key of a caller that requests a model
 * no worker lists. Data threads hold such a request until control has queried the services.
 */

import { createHash } from 'node:crypto'
import {
  Auth,
  type AuthService,
  type DescribeTools,
  type Host,
  type ModelCard,
  messageOf,
  type RequestContext,
  type RouteDefinition,
  type WorkerEntry,
  WorkerTableReplica,
} from '#kernel'
import { isSecureUrl } from '#shared'
import type { ControlParts } from './control-parts.ts'
import { namesOf, toCards } from './model-card.ts'
import { type CallerKey, LearnModels } from './thread-commands.ts'
import type { Worker } from './worker.ts'
import { toDescribeTarget } from './worker-spec.ts'
import { requireControl } from './worker-validation.ts'

const QUERY_TIMEOUT_MS = 5_000
/** A service is not queried again with the same key within this time. */
const REUSE_MS = 60_000
/** Bounds the memory, since clients can invent keys. */
const MAX_REMEMBERED = 1_000
/** Models of one service; more are dropped. */
const MAX_MODELS = 10_000

export class ModelInquiries {
  readonly #parts: ControlParts
  readonly #now: () => number
  /** Results by worker and key fingerprint, each reused until `endsAtMs`. */
  readonly #queried = new Map<string, { readonly endsAtMs: number; readonly answer: Promise<void> }>()

  constructor(parts: ControlParts, now: () => number = () => performance.now()) {
    this.#parts = parts
    this.#now = now
  }

  /** Resolves when every thread has the discovered models. Never rejects, since the request continues either way. */
  async learn(credential: CallerKey): Promise<void> {
    const { registry, config } = this.#parts
    const workers = registry
      .workers()
      .filter(
        (worker) => hasUnknownModels(worker) && mayReceiveKey(worker, credential, config.callerKeyHosts),
      )
    await Promise.all(workers.map((worker) => this.#query(worker, credential)))
  }

  #query(worker: Worker, credential: CallerKey): Promise<void> {
    const nowMs = this.#now()
    const fingerprint = createHash('sha256').update(credential.key).digest('base64')
    const label = `${worker.id} ${fingerprint}`
    const known = this.#queried.get(label)
    if (known !== undefined && known.endsAtMs > nowMs) return known.answer
    for (const [old, { endsAtMs }] of this.#queried)
      if (endsAtMs <= nowMs || this.#queried.size >= MAX_REMEMBERED) this.#queried.delete(old)
      else break
    const answer = this.#describe(worker, credential).catch((error: unknown) => {
      const reason = messageOf(error)
      this.#parts.log.info({ worker: worker.spec.url, reason }, 'cloud service models not discovered')
    })
    this.#queried.set(label, { endsAtMs: nowMs + REUSE_MS, answer })
    return answer
  }

  async #describe(seen: Worker, { key }: CallerKey): Promise<void> {
    const { controls, config, registry, log } = this.#parts
    const { spec, origin } = seen
    const tools: DescribeTools = {
      signal: AbortSignal.timeout(QUERY_TIMEOUT_MS),
      wait: () => Promise.reject(new Error('no response at the first attempt')),
      note: () => {},
      log,
      health: null,
      startupTimeoutMs: QUERY_TIMEOUT_MS,
      checkIntervalMs: QUERY_TIMEOUT_MS,
      expandsRanks: false,
      serviceKeys: new Map(),
    }
    const control = requireControl(controls, spec.url)
    const found = await control.describe({ ...toDescribeTarget(spec, origin), apiKey: key }, tools)
    const worker = registry.byId(seen.id)
    if (worker === undefined || !hasUnknownModels(worker) || !registry.isCurrent(worker)) return
    const models = mergeCards(worker.findings.models, toCards(found.models, config.modelAliases))
    if (models.length === worker.findings.models.length) return
    await registry.redescribe(registry.engineOf(worker), spec, { ...worker.findings, models })
    log.info({ worker: spec.url, models: models.length }, 'cloud service models discovered')
  }
}

/** A service that gets the keys of clients, and whose models are not configured. */
function hasUnknownModels({ entry, spec }: Worker): boolean {
  return entry.isExternal && spec.apiKey === null && spec.models === null
}

/** Different keys may list different models. */
function mergeCards(known: readonly ModelCard[], found: readonly ModelCard[]): readonly ModelCard[] {
  const names = new Set(namesOf(known))
  return [...known, ...found.filter(({ id }) => !names.has(id))].slice(0, MAX_MODELS)
}

/** Only configured hosts get client keys, and each service only keys in its own header, so that registering a worker cannot collect them. */
function mayReceiveKey({ spec, entry }: Worker, { header }: CallerKey, hosts: readonly string[]): boolean {
  const target = URL.parse(spec.url)
  if (target === null || !hosts.includes(target.hostname)) return false
  if ((entry.provider === 'anthropic') !== (header === 'x-api-key')) return false
  return isSecureUrl(target)
}

/** Model of requests that name none. */
const UNNAMED_MODEL = 'unknown'
/** Longer than the slowest service may take. */
const HOOK_TIMEOUT_MS = 8_000

/** On data threads: lets requests for unlisted models wait for discovery. Disabled while no such service is registered. */
export function discoverRequestedModels(host: Host): void {
  const auth = host.find(Auth)
  // Without it, gateway keys cannot be distinguished from client keys, so none is forwarded.
  if (auth === undefined) return
  const table = host.replica(WorkerTableReplica)
  let listed: ReadonlySet<string> = new Set()
  const hook = host.hook(
    'onRequest',
    async (ctx) => {
      const model = modelOf(ctx)
      if (model === null || listed.has(model)) return
      const credential = callerKey(ctx, auth)
      if (credential === null) return
      await host.command(LearnModels, credential).catch((err: unknown) => {
        host.log.debug({ err, request_id: ctx.requestId }, 'model discovery failed')
      })
    },
    { scope: 'all', startsOff: true, timeoutMs: HOOK_TIMEOUT_MS, routes: servesModels },
  )
  const update = (workers: readonly WorkerEntry[]) => {
    const isOn = workers.some((worker) => worker.isExternal && worker.apiKey === null)
    if (isOn) listed = new Set(workers.flatMap(({ models }) => namesOf(models)))
    hook.update({ isOn })
  }
  update(table.current.workers)
  table.onChange(({ workers }) => update(workers))
}

function servesModels({ access, method }: RouteDefinition): boolean {
  return access === 'api' && method === 'POST'
}

/** Null if no model is named or the body is invalid, which the handler reports. */
function modelOf(ctx: RequestContext): string | null {
  try {
    const { model } = ctx.peek()
    return model === UNNAMED_MODEL ? null : model
  } catch {
    return null
  }
}

/** The client's own key; null for keys of the gateway. */
function callerKey(ctx: RequestContext, auth: AuthService): CallerKey | null {
  const authorization = ctx.header('authorization')
  const apiKey = ctx.header('x-api-key')
  if (authorization !== undefined && auth.isGatewayKey(authorization)) return null
  if (apiKey !== undefined && auth.isGatewayKey(`Bearer ${apiKey}`)) return null
  if (apiKey) return { header: 'x-api-key', key: apiKey }
  const key = authorization === undefined ? undefined : /^bearer ([^ ]+)$/i.exec(authorization)?.[1]
  return key === undefined ? null : { header: 'authorization', key }
}
