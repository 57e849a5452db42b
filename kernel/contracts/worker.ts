/** What a worker is to the kernel: the record every thread holds, its states, and the replicated table. */
import { defineReplica } from './token.ts'

export type WorkerType = 'regular' | 'prefill' | 'decode'
/** How a worker is reached, such as `http`, `grpc`: the name of a transport. Only transports know what it means. */
export type ConnectionMode = string
/** What engine a worker runs, such as `sglang`, `vllm`, `external`. Only transports and engine adapters know what it means. */
export type RuntimeType = string

/** Lifecycle of a worker; only `ready` workers are routed to. */
export type WorkerStatus = 'pending' | 'ready' | 'not_ready' | 'failed' | 'draining'

/** Number of each status in shared memory and in the `weir_worker_state` gauge. */
export const WORKER_STATUS_CODE: Readonly<Record<WorkerStatus, number>> = Object.freeze({
  pending: 0,
  ready: 1,
  not_ready: 2,
  failed: 3,
  draining: 4,
})

/** One model that a worker serves. Members beyond these are carried as they came. */
export interface ModelCard {
  readonly id: string
  readonly aliases?: readonly string[]
  readonly context_length?: number
  readonly [key: string]: unknown
}

/** What one worker overrides of the kernel's retry and breaker settings. */
export interface WorkerResilience {
  /** Attempts in all, the first included. */
  readonly maxAttempts?: number
  readonly initialBackoffMs?: number
  readonly maxBackoffMs?: number
  /** Longest Retry-After of this worker that is waited for. */
  readonly maxWaitMs?: number
  readonly backoffMultiplier?: number
  /** 0 to 1. */
  readonly jitterFactor?: number
  readonly disableRetry?: boolean
  readonly failureThreshold?: number
  readonly successThreshold?: number
  readonly openMs?: number
  readonly disableBreaker?: boolean
  /** Statuses of this worker that count as failures and may be tried again elsewhere. */
  readonly retryableStatuses?: readonly number[]
}

/** What one worker overrides of the kernel's connection settings. */
export interface WorkerHttpPool {
  readonly maxIdle?: number
  readonly idleMs?: number
  readonly requestMs?: number
  readonly connectMs?: number
}

/** Which data-parallel rank of an engine this worker stands for; requests go to the engine's own URL. */
export interface DataParallelRank {
  /** URL without `@rank`. */
  readonly baseUrl: string
  /** 0-based. */
  readonly rank: number
  readonly size: number
}

/** One registered worker as the routing threads see it. Immutable; a change is a new entry of the same slot. */
export interface WorkerEntry {
  /** Row in the shared counters, 0-based. Kept for the worker's whole life. */
  readonly slot: number
  /** UUID given at registration. */
  readonly id: string
  /** Exactly as registered; of a data-parallel rank, the base URL, `@` and the rank. */
  readonly url: string
  readonly workerType: WorkerType
  readonly connectionMode: ConnectionMode
  readonly runtimeType: RuntimeType
  /**
   * Formats that the worker takes as clients send them, such as `chat`, `completions`, `messages`, `responses`: what is
   * asked in one of these is passed on as it is. Told by the transport that described the worker.
   */
  readonly apis: readonly string[]
  /** A service of somebody else: its models are not the gateway's. */
  readonly isExternal: boolean
  /**
   * Cloud service whose dialect and credentials the worker wants, such as `openai`: the configured one, else that of the
   * host of an external worker; null for none.
   */
  readonly provider: string | null
  /** Empty means wildcard: serves any model. */
  readonly models: readonly ModelCard[]
  /** Sent as `Authorization: Bearer` in place of the client's. Never shown, never logged. */
  readonly apiKey: string | null
  /** Higher is preferred: only the highest tier with an available worker is used. Default 50. */
  readonly priority: number
  /** Lower wins between workers that a policy holds equal. Default 1. */
  readonly cost: number
  readonly labels: Readonly<Record<string, string>>
  /** Port of the hand-over of KV blocks from prefill to decode workers; null when unset. */
  readonly bootstrapPort: number | null
  /** Host for the same; null stands for the host of the URL. */
  readonly bootstrapHost: string | null
  /** Null unless data-parallel expansion made this worker. */
  readonly dataParallel: DataParallelRank | null
  /** Null where the kernel's settings hold. */
  readonly resilience: WorkerResilience | null
  readonly httpPool: WorkerHttpPool | null
  /** Grows with each change of this worker. */
  readonly revision: number
}

/** All registered workers in order of registration. */
export interface WorkerTable {
  readonly workers: readonly WorkerEntry[]
}

/** The worker table on every thread: published by control, compiled for picking by `balance`. */
/** Workers that are registered but could not be reached yet, so that they are in no table. */
export interface PendingWorkers {
  readonly count: number
  /** The newest problem with one of them, without its address; null until there is one. */
  readonly problem: string | null
}

export const PendingWorkersReplica = defineReplica<PendingWorkers>('kernel.pending-workers', {
  count: 0,
  problem: null,
})

export const WorkerTableReplica = defineReplica<WorkerTable>('kernel.workers', { workers: [] })

/** What an engine said of itself when it was last asked. */
export interface EngineLoad {
  /** Prompt tokens waiting for prefill, over all ranks; -1 when not told. */
  readonly queuedTokens: number
  /** Tokens in KV memory, over all ranks; -1 when not told. */
  readonly usedTokens: number
  /** KV memory in use, mean over ranks, 0 to 1; -1 when not told. */
  readonly kvUsage: number
  /** Tokens generated a second, over all ranks; 0 when not told. */
  readonly tokensPerSecond: number
  /** Used tokens by rank, where the engine tells ranks apart. */
  readonly usedTokensByRank: readonly number[]
  /** `Date.now()` at the answer, milliseconds. */
  readonly atMs: number
  /** Has more work than it may have: other workers go before it, see {@link EngineLoads.overload}. Default false. */
  readonly isOverloaded?: boolean
  /** How often this engine is asked, milliseconds; three of these later the report says nothing any more. Default 10,000. */
  readonly periodMs?: number
}

/** Reports by worker slot; a slot without a fresh report has null or is beyond the end. */
export interface EngineLoads {
  readonly bySlot: readonly (EngineLoad | null)[]
  /**
   * What becomes of requests where overloaded workers alone are left: `avoid` gives them one, `shed` refuses them.
   * Absent while nobody is overloaded, so that picks need not look.
   */
  readonly overload?: 'avoid' | 'shed'
}

/** Engine reports on every thread: published by the load monitor, read by load-aware policies. */
export const EngineLoadsReplica = defineReplica<EngineLoads>('kernel.engine-loads', { bySlot: [] })
