/** The registration workflow up to the finished findings; registering and activating them is the manager's. */
import type { DescribeTools, Logger, WorkerControls, WorkerWish } from '#kernel'
import type { WorkersConfig } from './config.ts'
import { requireControl } from './controls.ts'
import { effectiveHealth } from './health-settings.ts'
import type { JobContext } from './jobs.ts'
import { normalizeCard, withAliases } from './model-card.ts'
import type { WorkerSpec } from './spec.ts'
import type { ModelCardWire } from './wire.ts'
import type { Findings, Origin } from './worker.ts'

export interface OnboardParts {
  readonly controls: WorkerControls
  readonly config: WorkersConfig
  readonly log: Logger
}

/**
 * Delay, then whatever the worker's connection mode does to find out what it is.
 *
 * @throws transport_missing where nobody looks after such workers, and what describing one throws
 */
export async function onboard(
  spec: WorkerSpec,
  origin: Origin,
  job: JobContext,
  { controls, config, log }: OnboardParts,
): Promise<Findings> {
  if (config.startupDelaySecs > 0) await job.wait(config.startupDelaySecs * 1000)
  const control = requireControl(controls, spec.url)
  const wish = toWish(spec, origin)
  const health = effectiveHealth(spec.health, config, control.isExternal(wish))
  const tools: DescribeTools = {
    signal: job.signal,
    wait: (waitMs) => job.wait(waitMs),
    note: (problem) => job.note(problem),
    log,
    health: health.isDisabled ? null : { path: config.health.endpoint, timeoutMs: health.timeoutSecs * 1000 },
    startupTimeoutMs: config.startupTimeoutSecs * 1000,
    checkIntervalMs: config.startupCheckIntervalSecs * 1000,
    expandsRanks: config.dpAware,
    serviceKeys: new Map(Object.entries(config.adminKeys)),
  }
  const found = await control.describe(wish, tools)
  const models = found.models.map((card) =>
    withAliases(normalizeCard(card as ModelCardWire), config.modelAliases),
  )
  return { ...found, connectionMode: control.mode, models }
}

export function toWish(spec: WorkerSpec, origin: Origin): WorkerWish {
  const { url, apiKey, runtimeType, models, labels, carried } = spec
  const provider = carried.provider ?? null
  return { url, apiKey, runtimeType, models, labels, provider, isConfigured: origin === 'config' }
}
