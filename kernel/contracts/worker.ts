/** What a worker is to the kernel: the record every thread holds, its states, and the replicated table. */
import { defineReplica } from './token.ts'

export type WorkerType = 'regular' | 'prefill' | 'decode'
export type ConnectionMode = 'http' | 'grpc'
export type RuntimeType = 'sglang' | 'vllm' | 'trtllm' | 'mlx' | 'external' | 'unspecified'

/** Lifecycle of a worker; only `ready` workers are routed to. @source routes facts "Lifecycle status" */
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

/** One registered worker as the routing threads see it. Immutable; a change is a new entry of the same slot. */
export interface WorkerEntry {
  /** Row in the shared counters, 0-based. Kept for the worker's whole life. */
  readonly slot: number
  /** UUID given at registration. */
  readonly id: string
  /** Exactly as registered. */
  readonly url: string
  readonly workerType: WorkerType
  readonly connectionMode: ConnectionMode
  readonly runtimeType: RuntimeType
  /** Empty means wildcard: serves any model. */
  readonly models: readonly ModelCard[]
  /** Sent as `Authorization: Bearer` in place of the client's. Never shown, never logged. */
  readonly apiKey: string | null
  /** Higher is preferred: only the highest tier with an available worker is used. Default 50. */
  readonly priority: number
  /** Lower wins between workers that a policy holds equal. Default 1. */
  readonly cost: number
  readonly labels: Readonly<Record<string, string>>
  /** Grows with each change of this worker. */
  readonly revision: number
}

/** All registered workers in order of registration. */
export interface WorkerTable {
  readonly workers: readonly WorkerEntry[]
}

/** The worker table on every thread: published by control, compiled for picking by `balance`. */
export const WorkerTableReplica = defineReplica<WorkerTable>('kernel.workers', { workers: [] })
