/**
 * The link between threads as one thread sees it: commands go up to control, replicas come down from it.
 * Control and data threads, and the single thread of `threads: 0`, hold the same interface.
 */

import type { TaskPool } from '../contracts/task-pool.ts'

/** One replicated value on this thread. */
export interface ReplicaCell {
  current: unknown
  /** 0 until the first publish. */
  version: number
  /** A promise of one is waited for before this thread acknowledges the value; nobody hears of its rejection. */
  readonly listeners: ((next: unknown) => unknown)[]
}

export interface ThreadLink {
  readonly isControl: boolean
  readonly isData: boolean
  /** 0 for control, 1-based for data threads. */
  readonly index: number
  /** Sends to control's handler and resolves with its result. GatewayErrors arrive as GatewayErrors. */
  command(name: string, payload: unknown): Promise<unknown>
  /** Control keeps the one handler per name and refuses a second; other threads ignore the call. */
  onCommand(name: string, handler: (payload: unknown) => unknown): void
  /** The cell of a replica, made with its initial value when new. */
  replica(name: string, initial: unknown): ReplicaCell
  /** Control only: next version on every thread; resolves when all that live have acknowledged, their listeners included. */
  publish(name: string, value: unknown): Promise<void>
  /**
   * The process-wide task pool of that name: control opens it, the others send it tasks.
   * @param threads how many it has
   */
  processPool(name: string, threads: number, open: () => TaskPool): TaskPool
}
