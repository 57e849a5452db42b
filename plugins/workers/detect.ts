/** Finds out what a worker is: local or a cloud service, up or not yet, and which engine runs it. */
import type { RuntimeType } from '#kernel'
import type { WorkersConfig } from './config.ts'
import { workerErrors } from './errors.ts'
import type { HealthSettings } from './health-settings.ts'
import { type Inquiry, modelEntries } from './inquiry.ts'
import type { JobContext } from './jobs.ts'
import { type CallWorker, probeWorker } from './probe.ts'
import type { WorkerSpec } from './spec.ts'

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
])

const FIRST_LOOK_DELAY_MS = 250
/** A look follows after this share of the time that the worker has taken so far, so it is found soon at any scale. */
const LOOK_SHARE = 0.25

/** What the look at the very end of the start-up timeout still gets. */
const LAST_LOOK_MS = 500

/** Name of the cloud service at a host; null for any other host. */
export function cloudProvider(host: string): string | null {
  for (const [domain, provider] of CLOUD_PROVIDERS)
    if (host === domain || host.endsWith(`.${domain}`)) return provider
  return null
}

/**
 * An engine name in the specification settles it, then the host does. Everything else is local: probes could only
 * confirm that, so none are sent.
 */
export function isExternal(spec: WorkerSpec, host: string): boolean {
  if (spec.runtimeType !== 'unspecified') return spec.runtimeType === 'external'
  return cloudProvider(host) !== null
}

/**
 * Looks at the health route until it answers 2xx.
 * @throws worker_unreachable when the start-up timeout passes first
 * @source routing facts 2.2 step 2
 */
export async function waitUntilHealthy(
  call: CallWorker,
  spec: WorkerSpec,
  health: HealthSettings,
  config: WorkersConfig,
  job: JobContext,
): Promise<void> {
  const startedAtMs = performance.now()
  const timeoutMs = config.startupTimeoutSecs * 1000
  for (;;) {
    const leftMs = timeoutMs - (performance.now() - startedAtMs)
    const probeMs = Math.min(health.timeoutSecs * 1000, Math.max(LAST_LOOK_MS, leftMs))
    const problem = await probeWorker(call, spec, config.healthCheck.endpoint, probeMs)
    job.signal.throwIfAborted()
    if (problem === null) return
    job.note(problem)
    const elapsedMs = performance.now() - startedAtMs
    const delayMs = nextLookDelayMs(elapsedMs, config.startupCheckIntervalSecs * 1000)
    if (elapsedMs >= timeoutMs) {
      throw workerErrors.worker_unreachable(spec.url, config.startupTimeoutSecs, problem)
    }
    await job.wait(Math.min(delayMs, timeoutMs - elapsedMs))
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
  return 'sglang'
}
