/** Describes an HTTP worker at its registration: health, engine, API formats, models and ranks. */
import { type DescribeTools, isObject, type WorkerDescription, type WorkerRegistration } from '#kernel'
import { isSecureUrl } from '#shared'
import { type CallWorker, probeWorker } from './control-call.ts'
import { discover, discoverExternal } from './discover-models.ts'
import type { Engine } from './engines/engine.ts'
import { engineOf, recognizeEngine } from './engines/index.ts'
import { httpWorkerErrors } from './errors.ts'
import { WorkerQueries } from './worker-queries.ts'

/** @throws worker_unreachable, model_discovery_failed, rank_discovery_failed */
export function describeWorker(
  call: CallWorker,
  target: WorkerRegistration,
  tools: DescribeTools,
): Promise<WorkerDescription> {
  return isExternalService(target)
    ? describeService(call, target, tools)
    : describeEngine(call, target, tools)
}

async function describeEngine(
  call: CallWorker,
  target: WorkerRegistration,
  tools: DescribeTools,
): Promise<WorkerDescription> {
  const { health, log } = tools
  const warnings: string[] = []
  const warn = (warning: string, reason: string | null) => {
    warnings.push(reason === null ? warning : `${warning} (${reason})`)
    log.warn({ worker: target.url, ...(reason !== null && { reason }) }, warning)
  }
  if (health !== null) await waitUntilHealthy(call, target, health, tools)
  // Without health checks the worker is ready at once, so failed queries are not retried.
  const queries = new WorkerQueries(call, target, tools, health === null ? null : () => 1_000)
  const isNamed = target.runtimeType !== 'unspecified'
  const engine = isNamed ? engineOf(target.runtimeType) : await recognizeEngine(queries)
  if (engine.name === 'unspecified' && queries.refusal === null)
    warn('engine not recognized; set its runtime_type if it is a supported one', null)
  const apis = await discoverApis(queries, engine)
  const { labels, models } = await discover(queries, { engine, apis }, target.labels, target.models)
  const reason = queries.refusal
  // Without a key of its own the worker may get those of clients.
  if (reason !== null && target.apiKey !== null) warn('worker rejects its api_key; correct it', reason)
  if (models.length === 0 && target.models === null)
    warn(
      'worker lists no models and serves any only while no worker lists one; set its models or its api_key',
      reason,
    )
  const rankCount = tools.expandsRanks ? await countRanks(engine, queries, target.url) : 1
  return {
    runtimeType: engine.name,
    labels,
    models,
    apis,
    isExternal: false,
    ...(rankCount > 1 && { rankCount }),
    ...(warnings.length > 0 && { warnings }),
  }
}

function countRanks(engine: Engine, queries: WorkerQueries, url: string): Promise<number> {
  if (engine.rankCount !== undefined) return engine.rankCount(queries, url)
  throw httpWorkerErrors.rank_discovery_failed(url, `${engine.name} engines do not report them`)
}

async function describeService(
  call: CallWorker,
  target: WorkerRegistration,
  tools: DescribeTools,
): Promise<WorkerDescription> {
  const owner = cloudProvider(target.url)
  const provider = target.provider ?? owner
  const found = {
    runtimeType: 'external',
    labels: {},
    apis: APIS_OF_SERVICE.get(provider ?? '') ?? SERVICE_APIS,
    isExternal: true,
    ...(owner !== null && { provider: owner }),
  } as const
  // The gateway's own key for the model list, only over a private connection to a host of the service or one that the
  // configuration names: otherwise registering a worker could send the key anywhere.
  const mayGetKey = (target.isConfigured || provider === owner) && isSecureUrl(new URL(target.url))
  const key = (mayGetKey ? tools.serviceKeys.get(provider ?? '') : undefined) ?? target.apiKey
  // Without a key of its own the worker gets the client's key, so its models are unknown until a client sends one.
  if (target.models !== null || key === null) return { ...found, models: target.models ?? [] }
  const retryDelayMs = (tried: number) => Math.min(10_000, 1_000 * 2 ** (tried - 1))
  const queries = new WorkerQueries(call, { url: target.url, apiKey: key, provider }, tools, retryDelayMs)
  return { ...found, models: await discoverExternal(queries) }
}

/** Cloud services by domain. */
const CLOUD_PROVIDERS: ReadonlyMap<string, string> = new Map([
  ['openai.com', 'openai'],
  ['x.ai', 'xai'],
  ['anthropic.com', 'anthropic'],
  ['googleapis.com', 'gemini'],
])

const FIRST_PROBE_DELAY_MS = 250
/** The next probe follows after this share of the time elapsed so far. */
const PROBE_DELAY_SHARE = 0.25

/** Timeout of a probe at the very end of the start-up timeout. */
const LAST_PROBE_MS = 500

/** Name of the cloud service behind a URL; null for any other. */
export function cloudProvider(url: string): string | null {
  const host = URL.parse(url)?.hostname ?? ''
  for (const [domain, provider] of CLOUD_PROVIDERS)
    if (host === domain || host.endsWith(`.${domain}`)) return provider
  return null
}

/**
 * Decides by the engine name in the specification, then by the provider, then by the host; every other worker is local.
 */
export function isExternalService({
  url,
  runtimeType,
  provider,
}: Pick<WorkerRegistration, 'url' | 'runtimeType' | 'provider'>): boolean {
  if (runtimeType !== 'unspecified') return runtimeType === 'external'
  return (provider ?? cloudProvider(url)) !== null
}

/**
 * Probes the health route until it answers 2xx.
 * @throws worker_unreachable if the start-up timeout passes first
 */
async function waitUntilHealthy(
  call: CallWorker,
  target: WorkerRegistration,
  health: NonNullable<DescribeTools['health']>,
  tools: DescribeTools,
): Promise<void> {
  const startedAtMs = performance.now()
  const timeoutMs = tools.startupTimeoutMs
  for (;;) {
    const leftMs = timeoutMs - (performance.now() - startedAtMs)
    const probeMs = Math.min(health.timeoutMs, Math.max(LAST_PROBE_MS, leftMs))
    const result = await probeWorker(call, target, health.path, probeMs)
    tools.signal.throwIfAborted()
    if (result === null) return
    const problem = result ?? 'the gateway has no free file descriptor or port'
    tools.note(problem)
    const elapsedMs = performance.now() - startedAtMs
    const delayMs = nextProbeDelayMs(elapsedMs, tools.checkIntervalMs)
    if (elapsedMs >= timeoutMs) {
      throw httpWorkerErrors.worker_unreachable(target.url, timeoutMs / 1000, problem)
    }
    await tools.wait(Math.min(delayMs, timeoutMs - elapsedMs))
  }
}

/** @param elapsedMs since the first probe @param maxMs longest delay */
export function nextProbeDelayMs(elapsedMs: number, maxMs: number): number {
  return Math.min(maxMs, Math.max(FIRST_PROBE_DELAY_MS, elapsedMs * PROBE_DELAY_SHARE))
}

type ApiOfPath = readonly (readonly [path: string, api: string])[]

/** Assumed for every OpenAI-compatible engine, unless it turns out to be one for embeddings. */
const COMMON_APIS: ApiOfPath = [
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'completions'],
]
/** Assumed, unless a trial shows that the engine lacks the route. */
const LIKELY_APIS: ApiOfPath = [
  ['/generate', 'generate'],
  ['/v1/embeddings', 'embeddings'],
  ['/v1/classify', 'classify'],
  ['/v1/rerank', 'rerank'],
]
/** Of only some engines. */
const RARE_APIS: ApiOfPath = [
  ['/v1/messages', 'messages'],
  ['/v1/responses', 'responses'],
]

/** Formats by cloud service; others get those of engines except `generate`. */
const APIS_OF_SERVICE: ReadonlyMap<string, readonly string[]> = new Map([
  ['anthropic', ['messages']],
  ['openai', ['chat', 'completions', 'embeddings', 'responses']],
])
const SERVICE_APIS = ['chat', 'completions', 'embeddings', 'classify', 'rerank']

/**
 * By the paths of the OpenAPI description, or by a trial of each if there is none. A description may leave out a likely route, so
 * that only a trial removes it.
 */
async function discoverApis(
  queries: WorkerQueries,
  { avoidedApis = [] }: Engine,
): Promise<readonly string[]> {
  const paths = (await queries.find('/openapi.json'))?.paths
  const isDescribed = (path: string) => isObject(paths) && takesPost(paths, path)
  const has = async (path: string) => isDescribed(path) || (await queries.hasRoute(path))
  const apis: string[] = []
  // Engines for chats are not tried for them.
  const mayLackChats = (await has('/v1/embeddings')) === true
  for (const [path, api] of COMMON_APIS) if (!mayLackChats || (await has(path)) !== false) apis.push(api)
  for (const [path, api] of LIKELY_APIS) if ((await has(path)) !== false) apis.push(api)
  const rare = RARE_APIS.filter(([, api]) => !avoidedApis.includes(api))
  for (const [path, api] of rare)
    if (isObject(paths) ? isDescribed(path) : (await queries.hasRoute(path)) === true) apis.push(api)
  return apis
}

function takesPost(paths: Record<string, unknown>, path: string): boolean {
  const item = Object.hasOwn(paths, path) ? paths[path] : null
  return isObject(item) && Object.hasOwn(item, 'post')
}
