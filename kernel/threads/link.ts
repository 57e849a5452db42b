/**
 * The link between a thread and control: commands go to control, replicas come from it. Control, data threads and the
 * single thread of `threads: 0` have the same interface.
 */

import type { TaskPool } from '../contracts/task-pool.ts'

/** One replicated value on this thread. */
export interface ReplicaCell {
  current: unknown
  /** 0 until the first publish. */
  version: number
  /** The thread acknowledges the value after the promises of its listeners have settled; rejections are ignored. */
  readonly listeners: ((next: unknown) => unknown)[]
}

export interface ThreadLink {
  readonly isControl: boolean
  readonly isData: boolean
  /** 0 for control, 1-based for data threads. */
  readonly index: number
  /** Sends to control's handler and resolves with its result. A GatewayError arrives as a GatewayError. */
  command(name: string, payload: unknown): Promise<unknown>
  /** Control keeps one handler per name and throws for a second; other threads ignore the call. */
  onCommand(name: string, handler: (payload: unknown) => unknown): void
  /** The cell of a replica, created with its initial value. */
  replica(name: string, initial: unknown): ReplicaCell
  /** Control only: publishes the next version; resolves when every live thread and its listeners have acknowledged it. */
  publish(name: string, value: unknown): Promise<void>
  /**
   * The process-wide task pool of that name: control opens it, other threads send it tasks.
   * @param threads size of the pool
   */
  processPool(name: string, threads: number, open: () => TaskPool): TaskPool
}
