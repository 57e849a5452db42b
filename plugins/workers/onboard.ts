/** The registration workflow up to the finished findings; registering and activating them is the manager's. */
import type { Logger } from '#kernel'
import { adminKeyOf } from './admin-keys.ts'
import type { WorkersConfig } from './config.ts'
import { cloudProvider, detectRuntime, isExternal, waitUntilHealthy } from './detect.ts'
import { discover } from './discover.ts'
import { discoverExternal, listTarget } from './discover-external.ts'
import { discoverRankCount } from './discover-ranks.ts'
import { workerErrors } from './errors.ts'
import { effectiveHealth } from './health-settings.ts'
import { Inquiry } from './inquiry.ts'
import type { JobContext } from './jobs.ts'
import { withAliases } from './model-card.ts'
import type { CallWorker } from './probe.ts'
import type { WorkerSpec } from './spec.ts'
import { ENGINE_APIS, type Findings, type Origin } from './worker.ts'
import { parseWorkerUrl } from './worker-url.ts'

export interface OnboardParts {
  readonly call: CallWorker
  readonly config: WorkersConfig
  readonly log: Logger
}

/**
 * Delay, classify, wait until the worker is up, detect its engine, read its metadata, models and ranks.
 *
 * @throws transport_missing for modes that this build cannot reach, worker_unreachable, model_discovery_failed,
 *   rank_discovery_failed
 * @source routing facts 2.2, routes facts 16.4
 */
export async function onboard(
  spec: WorkerSpec,
  origin: Origin,
  job: JobContext,
  parts: OnboardParts,
): Promise<Findings> {
  const { config } = parts
  if (config.startupDelaySecs > 0) await job.wait(config.startupDelaySecs * 1000)
  const { mode, host } = parseWorkerUrl(spec.url)
  if (mode !== 'http') throw workerErrors.transport_missing(mode)
  const found = isExternal(spec, host)
    ? await onboardExternal(spec, origin, job, parts)
    : await onboardLocal(spec, job, parts)
  return { ...found, models: found.models.map((card) => withAliases(card, config.modelAliases)) }
}

async function onboardLocal(spec: WorkerSpec, job: JobContext, parts: OnboardParts): Promise<Findings> {
  const { call, config, log } = parts
  const health = effectiveHealth(spec.health, config, false)
  if (!health.isDisabled) await waitUntilHealthy(call, spec, health, config, job)
  // Without health checks a worker is ready at once, so one that does not answer is not asked again.
  const inquiry = new Inquiry(call, spec, job, { retryDelayMs: () => 1_000, hasRetries: !health.isDisabled })
  const runtimeType = spec.runtimeType === 'unspecified' ? await detectRuntime(inquiry) : spec.runtimeType
  const { labels, models } = await discover(inquiry, runtimeType, spec.labels, spec.models)
  if (inquiry.refusal !== null && models.length === 0 && spec.models === null) {
    const reason = inquiry.refusal
    log.warn(
      { worker: spec.url, reason },
      'worker refuses to tell its models, so it serves any; check its api_key',
    )
  }
  const rankCount = config.dpAware ? await discoverRankCount(inquiry, spec.url, runtimeType) : 1
  return { connectionMode: 'http', runtimeType, labels, models, ...(rankCount > 1 && { rankCount }) }
}

async function onboardExternal(
  spec: WorkerSpec,
  origin: Origin,
  job: JobContext,
  { call, config }: OnboardParts,
): Promise<Findings> {
  const host = cloudProvider(parseWorkerUrl(spec.url).host)
  const provider = spec.carried.provider ?? host
  const apis = provider === 'anthropic' ? ['messages'] : ENGINE_APIS
  const found = { connectionMode: 'http', runtimeType: 'external', labels: {}, apis } as const
  // A name is proof of its owner over TLS only.
  const isOwnHost = provider === host && spec.url.startsWith('https://')
  const key = adminKeyOf(config.adminKeys, provider, origin === 'config' || isOwnHost) ?? spec.apiKey
  // Without a key of its own the worker gets the caller's, whose models we cannot know beforehand.
  if (spec.models !== null || key === null) return { ...found, models: spec.models ?? [] }
  const inquiry = new Inquiry(call, listTarget(spec.url, provider, key), job, {
    retryDelayMs: (tried) => Math.min(10_000, 1_000 * 2 ** (tried - 1)),
    hasRetries: true,
  })
  return { ...found, models: await discoverExternal(inquiry) }
}
