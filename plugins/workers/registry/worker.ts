/** A registered worker on control: its specification, what discovery found, and its row in the worker table. */
import type {
  ConnectionMode,
  DataParallelRank,
  ModelCard,
  RuntimeType,
  WorkerEntry,
  WorkerStatus,
} from '#kernel'
import type { WorkersConfig } from './config.ts'
import {
  effectiveHealth,
  type HealthSettings,
  type Origin,
  toHttpPool,
  toResilience,
  type WorkerSpec,
} from './worker-spec.ts'

/** Result of describing a worker. Stored as JSON. */
export interface Findings {
  readonly connectionMode: ConnectionMode
  readonly runtimeType: RuntimeType
  /** As in `WorkerEntry`. */
  readonly apis?: readonly string[]
  readonly isExternal?: boolean
  /** Name of the cloud service, by its host. */
  readonly provider?: string
  /** Empty for a wildcard. */
  readonly models: readonly ModelCard[]
  /** Without those that the specification sets. */
  readonly labels: Readonly<Record<string, string>>
  /** Number of data-parallel ranks that become a worker each; absent if the engine is one worker. */
  readonly rankCount?: number
  /** What an operator should correct. */
  readonly warnings?: readonly string[]
}

/** Immutable: a change creates a new object with the next revision. */
export interface Worker extends WorkerParts {
  readonly health: HealthSettings
  /** Row of the worker table, with slot and revision. */
  readonly entry: WorkerEntry
}

export interface WorkerParts {
  readonly id: string
  /** Shared by all data-parallel ranks of an engine. */
  readonly spec: WorkerSpec
  readonly findings: Findings
  readonly origin: Origin
  /** 0-based; null if the engine is one worker. */
  readonly rank: number | null
}

/** Builds the worker of one slot. */
export function buildWorker(
  parts: WorkerParts,
  slot: number,
  revision: number,
  config: WorkersConfig,
): Worker {
  const { id, spec, findings } = parts
  const dataParallel = toDataParallel(parts)
  const isExternal = findings.isExternal ?? false
  const isUnlisted = findings.models.length === 0 && spec.models === null && !isExternal
  return {
    ...parts,
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
      ...(isUnlisted && { isUnlisted }),
      apiKey: spec.apiKey,
      priority: spec.priority,
      cost: spec.cost,
      labels: { ...findings.labels, ...spec.labels },
      configuredLabels: spec.configuredLabels,
      bootstrapPort: spec.carried.bootstrap_port || null,
      bootstrapHost: spec.carried.bootstrap_host ?? null,
      dataParallel,
      resilience: toResilience(spec.carried.resilience),
      httpPool: toHttpPool(spec.carried.http_pool),
      revision,
    },
  }
}

/** Status of the worker while its engine is healthy. */
export function healthyStatus({ spec }: Worker): HealthyStatus {
  return spec.isDrained ? 'drained' : 'ready'
}

type HealthyStatus = Extract<WorkerStatus, 'ready' | 'drained'>

/** The engine of a worker of this status passes its probes. */
export function isHealthy(status: WorkerStatus): status is HealthyStatus {
  return status === 'ready' || status === 'drained'
}

function toDataParallel({ spec, findings, rank }: WorkerParts): DataParallelRank | null {
  if (rank === null) return null
  return { baseUrl: spec.url, rank, size: findings.rankCount ?? 1 }
}

/** The worker with another specification of the same engine, which it keeps its findings of. */
export function respecifyWorker(worker: Worker, spec: WorkerSpec, config: WorkersConfig): Worker {
  return buildWorker({ ...worker, spec }, worker.entry.slot, worker.entry.revision + 1, config)
}
