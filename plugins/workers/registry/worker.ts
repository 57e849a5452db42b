/** A registered worker as control holds it: what was asked for, what was found, and its place in the table. */
import type { ConnectionMode, DataParallelRank, ModelCard, RuntimeType, WorkerEntry } from '#kernel'
import type { WorkersConfig } from './config.ts'
import { effectiveHealth, type HealthSettings } from './health-settings.ts'
import { toHttpPool, toResilience } from './resilience.ts'
import { patchSpec, type WorkerPatch, type WorkerSpec } from './spec.ts'

/** What the registration workflow found out. Survives JSON. */
export interface Findings {
  readonly connectionMode: ConnectionMode
  readonly runtimeType: RuntimeType
  /** As in `WorkerEntry`; absent in records of before they were told. */
  readonly apis?: readonly string[]
  readonly isExternal?: boolean
  /** Name of the service behind it, by its host. */
  readonly provider?: string
  /** Empty for a wildcard. */
  readonly models: readonly ModelCard[]
  /** Without those that the specification sets. */
  readonly labels: Readonly<Record<string, string>>
  /** Data-parallel ranks that become a worker each; absent where the engine is one worker. */
  readonly rankCount?: number
}

/** Where a worker comes from; those of the configuration come back by themselves at the next start. */
export type Origin = 'api' | 'config'

/** Immutable: a change is a new object with the next revision. */
export interface Worker extends WorkerParts {
  readonly health: HealthSettings
  /** As the routing threads get it; holds slot and revision. */
  readonly entry: WorkerEntry
}

export interface WorkerParts {
  readonly id: string
  /** Of a data-parallel rank, that of its whole engine: all ranks share it. */
  readonly spec: WorkerSpec
  readonly findings: Findings
  readonly origin: Origin
  /** 0-based; null when the engine is one worker. */
  readonly rank: number | null
}

/** Puts a worker together for one row of the table. */
export function buildWorker(
  parts: WorkerParts,
  slot: number,
  revision: number,
  config: WorkersConfig,
): Worker {
  const { id, spec, findings, origin, rank } = parts
  const dataParallel = toDataParallel(parts)
  const isExternal = findings.isExternal ?? false
  return {
    id,
    spec,
    findings,
    origin,
    rank,
    health: effectiveHealth(spec.health, config, isExternal),
    entry: {
      slot,
      id,
      url: dataParallel === null ? spec.url : `${dataParallel.baseUrl}@${dataParallel.rank}`,
      workerType: spec.workerType,
      connectionMode: findings.connectionMode,
      runtimeType: findings.runtimeType,
      apis: spec.carried.apis ?? findings.apis ?? [],
      isExternal,
      provider: spec.carried.provider ?? findings.provider ?? null,
      models: findings.models,
      apiKey: spec.apiKey,
      priority: spec.priority,
      cost: spec.cost,
      labels: { ...findings.labels, ...spec.labels },
      bootstrapPort: spec.carried.bootstrap_port || null,
      bootstrapHost: spec.carried.bootstrap_host ?? null,
      dataParallel,
      resilience: toResilience(spec.carried.resilience),
      httpPool: toHttpPool(spec.carried.http_pool),
      revision,
    },
  }
}

function toDataParallel({ spec, findings, rank }: WorkerParts): DataParallelRank | null {
  if (rank === null) return null
  return { baseUrl: spec.url, rank, size: findings.rankCount ?? 1 }
}

/** The worker after a PATCH: everything that the patch does not name is kept. */
export function patchWorker(worker: Worker, patch: WorkerPatch, config: WorkersConfig): Worker {
  const parts = { ...worker, spec: patchSpec(worker.spec, patch) }
  return buildWorker(parts, worker.entry.slot, worker.entry.revision + 1, config)
}
