/** Finds out what a worker is: local or a cloud service, up or not yet, and which engine runs it. */
import type { DescribeTools, RuntimeType, WorkerWish } from '#kernel'
import { httpWorkerErrors } from './errors.ts'
import { type Inquiry, modelEntries } from './inquiry.ts'
import { type CallWorker, probeWorker } from './probe.ts'

/** Domains of cloud services and the name of each. */
const CLOUD_PROVIDERS: ReadonlyMap<string, string> = new Map([
  ['openai.com', 'openai'],
  ['x.ai', 'xai'],
  ['anthropic.com', 'anthropic'],
  ['googleapis.com', 'gemini'],
])

/** `owned_by` in a model list → engine. The word is a stranger's. */
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

/** The engine of a local worker; sglang when it does not tell. */
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
