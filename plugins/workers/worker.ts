/** A registered worker as control holds it: what was asked for, what was found, and its place in the table. */
import type { ConnectionMode, ModelCard, RuntimeType, WorkerEntry } from '#kernel'
import type { WorkersConfig } from './config.ts'
import { effectiveHealth, type HealthSettings } from './health-settings.ts'
import { patchSpec, type WorkerPatch, type WorkerSpec } from './spec.ts'

/** What the registration workflow found out. Survives JSON. */
export interface Findings {
  readonly connectionMode: ConnectionMode
  readonly runtimeType: RuntimeType
  /** Empty for a wildcard. */
  readonly models: readonly ModelCard[]
  /** Without those that the specification sets. */
  readonly labels: Readonly<Record<string, string>>
}

/** Where a worker comes from; those of the configuration come back by themselves at the next start. */
export type Origin = 'api' | 'config'

/** Immutable: a change is a new object with the next revision. */
export interface Worker {
  readonly id: string
  readonly spec: WorkerSpec
  readonly findings: Findings
  readonly origin: Origin
  readonly health: HealthSettings
  /** As the routing threads get it; holds slot and revision. */
  readonly entry: WorkerEntry
}

export interface WorkerParts {
  readonly id: string
  readonly spec: WorkerSpec
  readonly findings: Findings
  readonly origin: Origin
}

/** Puts a worker together for one row of the table. */
export function buildWorker(
  parts: WorkerParts,
  slot: number,
  revision: number,
  config: WorkersConfig,
): Worker {
  const { id, spec, findings } = parts
  return {
    ...parts,
    health: effectiveHealth(spec.health, config, findings.runtimeType === 'external'),
    entry: {
      slot,
      id,
      url: spec.url,
      workerType: spec.workerType,
      connectionMode: findings.connectionMode,
      runtimeType: findings.runtimeType,
      models: findings.models,
      apiKey: spec.apiKey,
      priority: spec.priority,
      cost: spec.cost,
      labels: { ...findings.labels, ...spec.labels },
      bootstrapPort: null,
      bootstrapHost: null,
      dataParallel: null,
      resilience: null,
      httpPool: null,
      revision,
    },
  }
}

/** The worker after a PATCH: everything that the patch does not name is kept. @source routing facts 2.8 */
export function patchWorker(worker: Worker, patch: WorkerPatch, config: WorkersConfig): Worker {
  const parts = { ...worker, spec: patchSpec(worker.spec, patch) }
  return buildWorker(parts, worker.entry.slot, worker.entry.revision + 1, config)
}
