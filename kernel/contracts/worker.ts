/** Workers: the entry that every thread has, its states, and the replicated table. */
import { defineReplica } from './token.ts'

export type WorkerType = 'regular' | 'prefill' | 'decode'
/** Name of a transport, such as `http` or `grpc`. */
export type ConnectionMode = string
/** Engine of a worker, such as `sglang`, `vllm`, `external`; only transports and engine adapters interpret it. */
export type RuntimeType = string

/**
 * Lifecycle of a worker; only `ready` workers are picked. `drained` is a healthy worker that an operator keeps requests away
 * from, `draining` one that is being removed.
 */
export type WorkerStatus = 'pending' | 'ready' | 'not_ready' | 'failed' | 'draining' | 'drained'

/** Number of each status in shared memory and in the `weir_worker_state` gauge. */
export const WORKER_STATUS_CODE: Readonly<Record<WorkerStatus, number>> = Object.freeze({
  pending: 0,
  ready: 1,
  not_ready: 2,
  failed: 3,
  draining: 4,
  drained: 5,
})

/** One model that a worker serves. Other members are kept unchanged. */
export interface ModelCard {
  readonly id: string
  readonly aliases?: readonly string[]
  readonly context_length?: number
  readonly [key: string]: unknown
}

/** Retry and breaker settings of a worker that override the kernel's. */
export interface WorkerResilience {
  /** Attempts per request, including the first. */
  readonly maxAttempts?: number
  readonly initialBackoffMs?: number
  readonly maxBackoffMs?: number
  /** Longest Retry-After of this worker to wait for. */
  readonly maxWaitMs?: number
  readonly backoffMultiplier?: number
  /** 0 to 1. */
  readonly jitterFactor?: number
  readonly disableRetry?: boolean
  readonly failureThreshold?: number
  readonly successThreshold?: number
  readonly openMs?: number
  readonly disableBreaker?: boolean
  /** Response statuses of this worker that count as failures and are retried. */
  readonly retryableStatuses?: readonly number[]
}

/** Connection settings of a worker that override the kernel's. */
export interface WorkerHttpPool {
  readonly maxIdle?: number
  readonly idleMs?: number
  readonly requestMs?: number
  readonly connectMs?: number
  readonly headMs?: number
  readonly firstTokenMs?: number
}

/** The data-parallel rank of an engine that this worker represents; requests go to the engine's URL. */
export interface DataParallelRank {
  /** URL without `@rank`. */
  readonly baseUrl: string
  /** 0-based. */
  readonly rank: number
  readonly size: number
}

/** One registered worker. Immutable; a change is a new entry of the same slot. */
export interface WorkerEntry {
  /** Row in the shared counters, 0-based; constant for the worker's life. */
  readonly slot: number
  /** UUID assigned at registration. */
  readonly id: string
  /** Exactly as registered; of a data-parallel rank, the base URL, `@` and the rank. */
  readonly url: string
  readonly workerType: WorkerType
  readonly connectionMode: ConnectionMode
  readonly runtimeType: RuntimeType
  /**
   * API formats that the worker accepts, such as `chat`, `completions`, `messages`, `responses`: requests in one of these
   * are forwarded unchanged. Set by the transport.
   */
  readonly apis: readonly string[]
  /** A third-party service. */
  readonly isExternal: boolean
  /**
   * Cloud service whose dialect and credentials the worker uses, such as `openai`: the configured one, else that of the
   * host of an external worker; null for none.
   */
  readonly provider: string | null
  /** Empty means wildcard: serves any model. */
  readonly models: readonly ModelCard[]
  /** Its models are neither configured nor reported: it serves any model only while no worker of its type lists one. */
  readonly isUnlisted?: boolean
  /** Replaces the client's as `Authorization: Bearer`. Never shown, never logged. */
  readonly apiKey: string | null
  /** Higher is preferred: only the highest tier with an available worker is used. Default 50. */
  readonly priority: number
  /** Lower is preferred between workers that a policy considers equal. Default 1. */
  readonly cost: number
  readonly labels: Readonly<Record<string, string>>
  /** Those of `labels` that the configuration file sets; absent for a worker registered through the API. */
  readonly configuredLabels?: Readonly<Record<string, string>>
  /** Port for the transfer of KV blocks from prefill to decode workers; null if unset. */
  readonly bootstrapPort: number | null
  /** Host for the transfer; null for the host of the URL. */
  readonly bootstrapHost: string | null
  /** Null unless data-parallel expansion made this worker. */
  readonly dataParallel: DataParallelRank | null
  /** Null if the kernel's settings apply. */
  readonly resilience: WorkerResilience | null
  readonly httpPool: WorkerHttpPool | null
  /** Incremented by each change of this worker. */
  readonly revision: number
}

/** All registered workers in order of registration. */
export interface WorkerTable {
  readonly workers: readonly WorkerEntry[]
}

/** Workers that are registered but not reached yet, so that they are not in the table. */
export interface PendingWorkers {
  readonly count: number
  /** The latest problem with one of them, without its address; null before one. */
  readonly problem: string | null
  /** Models and aliases that they will serve, as far as they are configured. */
  readonly models: readonly string[]
  /** Whether one of them may serve any model: it was registered recently, and its models are not known yet. */
  readonly isDiscovering: boolean
  /** Workers of the configuration. */
  readonly configured: number
  /** Those of them that have not responded yet. */
  readonly configuredPending: number
}

export const NO_PENDING_WORKERS: PendingWorkers = Object.freeze({
  count: 0,
  problem: null,
  models: [],
  isDiscovering: false,
  configured: 0,
  configuredPending: 0,
})

export const PendingWorkersReplica = defineReplica<PendingWorkers>(
  'kernel.pending-workers',
  NO_PENDING_WORKERS,
)

/** Published by control, compiled for picks by `balance`. */
export const WorkerTableReplica = defineReplica<WorkerTable>('kernel.workers', { workers: [] })

export interface EngineLoad {
  /** Prompt tokens waiting for prefill, over all ranks; -1 if unknown. */
  readonly queuedTokens: number
  /** Tokens in KV memory, over all ranks; -1 if unknown. */
  readonly usedTokens: number
  /** KV memory in use, mean over ranks, 0 to 1; -1 if unknown. */
  readonly kvUsage: number
  /** Tokens generated per second, over all ranks; 0 if unknown. */
  readonly tokensPerSecond: number
  /** `Date.now()` of the report, milliseconds. */
  readonly atMs: number
  /** Above its limit: other workers are preferred, see {@link EngineLoads.overload}. Default false. */
  readonly isOverloaded?: boolean
  /** Poll period of this engine, milliseconds; the report expires after three periods. Default 10,000. */
  readonly periodMs?: number
}

/** Load reports by worker slot; a slot without one has null or is beyond the end. */
export interface EngineLoads {
  readonly bySlot: readonly (EngineLoad | null)[]
  /**
   * If only overloaded workers are left, `avoid` uses one and `shed` rejects the request. Absent while no worker is
   * overloaded, so that picks skip the check.
   */
  readonly overload?: 'avoid' | 'shed'
}

/** Published by the load monitor, read by load-aware policies. */
export const EngineLoadsReplica = defineReplica<EngineLoads>('kernel.engine-loads', { bySlot: [] })
