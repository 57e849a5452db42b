/** Describes an HTTP worker at its registration: waits until it is healthy, then detects its engine, API formats, models and ranks. */
import type { DescribeTools, RuntimeType, WorkerDescription, WorkerWish } from '#kernel'
import { isPrivateWay } from '#shared'
import { type CallWorker, probeWorker } from './control-call.ts'
import { discover, discoverExternal, discoverRankCount } from './discover-models.ts'
import { httpWorkerErrors } from './errors.ts'
import { type Info, Inquiry, modelEntries } from './inquiry.ts'

/**
 * @throws worker_unreachable, model_discovery_failed, rank_discovery_failed
 * @source routing facts 2.2, routes facts 16.4
 */
export function describeWorker(
  call: CallWorker,
  wish: WorkerWish,
  tools: DescribeTools,
): Promise<WorkerDescription> {
  return isExternalService(wish) ? describeService(call, wish, tools) : describeEngine(call, wish, tools)
}

async function describeEngine(
  call: CallWorker,
  wish: WorkerWish,
  tools: DescribeTools,
): Promise<WorkerDescription> {
  const { health, log } = tools
  if (health !== null) await waitUntilHealthy(call, wish, health, tools)
  // Without health checks a worker is ready at once, so one that does not answer is not asked again.
  const inquiry = new Inquiry(call, wish, tools, { retryDelayMs: () => 1_000, hasRetries: health !== null })
  const runtimeType = wish.runtimeType === 'unspecified' ? await detectRuntime(inquiry) : wish.runtimeType
  const { labels, models } = await discover(inquiry, runtimeType, wish.labels, wish.models)
  if (inquiry.refusal !== null && models.length === 0 && wish.models === null) {
    const reason = inquiry.refusal
    log.warn(
      { worker: wish.url, reason },
      'worker refuses to tell its models, so it serves any; check its api_key',
    )
  }
  const apis = await discoverApis(inquiry)
  const rankCount = tools.expandsRanks ? await discoverRankCount(inquiry, wish.url, runtimeType) : 1
  return { runtimeType, labels, models, apis, isExternal: false, ...(rankCount > 1 && { rankCount }) }
}

async function describeService(
  call: CallWorker,
  wish: WorkerWish,
  tools: DescribeTools,
): Promise<WorkerDescription> {
  const owner = cloudProvider(wish.url)
  const provider = wish.provider ?? owner
  const found = {
    runtimeType: 'external',
    labels: {},
    apis: apisOfService(provider),
    isExternal: true,
    ...(owner !== null && { provider: owner }),
  } as const
  const isNamed = wish.isConfigured || provider === owner
  const key =
    adminKeyOf(tools.serviceKeys, provider, isNamed && isPrivateWay(new URL(wish.url))) ?? wish.apiKey
  // Without a key of its own the worker gets the caller's, whose models we cannot know beforehand.
  if (wish.models !== null || key === null) return { ...found, models: wish.models ?? [] }
  const inquiry = new Inquiry(call, { url: wish.url, apiKey: key, provider }, tools, {
    retryDelayMs: (tried) => Math.min(10_000, 1_000 * 2 ** (tried - 1)),
    hasRetries: true,
  })
  return { ...found, models: await discoverExternal(inquiry) }
}

/** Domains of cloud services and the name of each. @source routes facts 16.1, routing facts 2.2 step 1 */
const CLOUD_PROVIDERS: ReadonlyMap<string, string> = new Map([
  ['openai.com', 'openai'],
  ['x.ai', 'xai'],
  ['anthropic.com', 'anthropic'],
  ['googleapis.com', 'gemini'],
])

/** `owned_by` in a model list → engine. The word is a stranger's. @source routing facts 2.2 step 3 */
const ENGINE_OF_OWNER: ReadonlyMap<string, RuntimeType> = new Map([
  ['sglang', 'sglang'],
  ['nvidia', 'sglang'],
  ['vllm', 'vllm'],
  ['trtllm', 'trtllm'],
  ['tensorrt_llm', 'trtllm'],
  ['tensorrt-llm', 'trtllm'],
  ['mlx', 'mlx'],
  ['mlx_lm', 'mlx'],
  ['mlx-lm', 'mlx'],
  ['llamacpp', 'llamacpp'],
])

const FIRST_LOOK_DELAY_MS = 250
/** A look follows after this share of the time that the worker has taken so far, so it is found soon at any scale. */
const LOOK_SHARE = 0.25

/** What the look at the very end of the start-up timeout still gets. */
const LAST_LOOK_MS = 500

/** Name of the cloud service behind a URL; null for any other. */
export function cloudProvider(url: string): string | null {
  const host = URL.parse(url)?.hostname ?? ''
  for (const [domain, provider] of CLOUD_PROVIDERS)
    if (host === domain || host.endsWith(`.${domain}`)) return provider
  return null
}

/**
 * An engine name in the specification settles it, then a provider does, then the host. Everything else is local: probes
 * could only confirm that, so none are sent.
 */
export function isExternalService({
  url,
  runtimeType,
  provider,
}: Pick<WorkerWish, 'url' | 'runtimeType' | 'provider'>): boolean {
  if (runtimeType !== 'unspecified') return runtimeType === 'external'
  return (provider ?? cloudProvider(url)) !== null
}

/**
 * Looks at the health route until it answers 2xx.
 * @throws worker_unreachable when the start-up timeout passes first
 * @source routing facts 2.2 step 2
 */
export async function waitUntilHealthy(
  call: CallWorker,
  wish: WorkerWish,
  health: NonNullable<DescribeTools['health']>,
  tools: DescribeTools,
): Promise<void> {
  const startedAtMs = performance.now()
  const timeoutMs = tools.startupTimeoutMs
  for (;;) {
    const leftMs = timeoutMs - (performance.now() - startedAtMs)
    const probeMs = Math.min(health.timeoutMs, Math.max(LAST_LOOK_MS, leftMs))
    const result = await probeWorker(call, wish, health.path, probeMs)
    tools.signal.throwIfAborted()
    if (result === null) return
    const problem = result ?? 'the gateway has no descriptor or port left'
    tools.note(problem)
    const elapsedMs = performance.now() - startedAtMs
    const delayMs = nextLookDelayMs(elapsedMs, tools.checkIntervalMs)
    if (elapsedMs >= timeoutMs) {
      throw httpWorkerErrors.worker_unreachable(wish.url, timeoutMs / 1000, problem)
    }
    await tools.wait(Math.min(delayMs, timeoutMs - elapsedMs))
  }
}

/** @param elapsedMs since the first look @param maxMs longest wait */
export function nextLookDelayMs(elapsedMs: number, maxMs: number): number {
  return Math.min(maxMs, Math.max(FIRST_LOOK_DELAY_MS, elapsedMs * LOOK_SHARE))
}

/** The engine of a local worker; sglang when it does not tell. @source routing facts 2.2 step 3 */
export async function detectRuntime(inquiry: Inquiry): Promise<RuntimeType> {
  const [first] = modelEntries(await inquiry.find('/v1/models'))
  const owner = typeof first?.owned_by === 'string' ? first.owned_by.toLowerCase() : ''
  const known = ENGINE_OF_OWNER.get(owner)
  if (known !== undefined) return known
  if ((await inquiry.find('/version')) !== null) return 'vllm'
  // Only llama.cpp has slots, and says how many.
  const slots = (await inquiry.find('/props'))?.total_slots
  return typeof slots === 'number' ? 'llamacpp' : 'sglang'
}

/** What every OpenAI-compatible engine is asked as it comes; what one lacks, it refuses itself. */
export const ENGINE_APIS: readonly string[] = [
  'chat',
  'completions',
  'generate',
  'embeddings',
  'classify',
  'rerank',
]

/** APIs that only some engines have: told by the paths in their own description. */
const API_OF_PATH: readonly (readonly [path: string, api: string])[] = [
  ['/v1/messages', 'messages'],
  ['/v1/responses', 'responses'],
]

/** Of services, by name; any other takes what engines do, but for `generate`, which is theirs alone. */
const APIS_OF_SERVICE: ReadonlyMap<string, readonly string[]> = new Map([
  ['anthropic', ['messages']],
  ['openai', ['chat', 'completions', 'embeddings', 'responses']],
])
const SERVICE_APIS = ENGINE_APIS.filter((api) => api !== 'generate')

/** @param provider name of the service; null when nobody says */
export function apisOfService(provider: string | null): readonly string[] {
  return (provider === null ? undefined : APIS_OF_SERVICE.get(provider)) ?? SERVICE_APIS
}

export async function discoverApis(inquiry: Inquiry): Promise<readonly string[]> {
  const paths = pathsOf(await inquiry.find('/openapi.json'))
  return [...ENGINE_APIS, ...API_OF_PATH.filter(([path]) => paths.has(path)).map(([, api]) => api)]
}

/** Paths that take requests with a body. */
function pathsOf(description: Info | null): ReadonlySet<string> {
  const paths = description?.paths
  if (typeof paths !== 'object' || paths === null) return new Set()
  return new Set(API_OF_PATH.map(([path]) => path).filter((path) => takesPost(paths, path)))
}

function takesPost(paths: object, path: string): boolean {
  if (!Object.hasOwn(paths, path)) return false
  const item: unknown = (paths as Record<string, unknown>)[path]
  return typeof item === 'object' && item !== null && Object.hasOwn(item, 'post')
}

/**
 * @param provider service that the worker stands for; null when nobody says
 * @param isTrusted the key may go to the worker's host: it is the service's own, which a name proves over TLS only, or the
 *   configuration names it; and nobody on the way reads along. Whoever may register workers could otherwise have the key
 *   sent anywhere.
 * @source routing facts 2.3
 */
export function adminKeyOf(
  keys: ReadonlyMap<string, string>,
  provider: string | null,
  isTrusted: boolean,
): string | null {
  return provider === null || !isTrusted ? null : (keys.get(provider) ?? null)
}
