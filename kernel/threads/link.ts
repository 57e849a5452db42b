/**
 * The link between a thread and control: commands go to control, replicas come from it. Control, data threads and the
 * single thread of `threads: 0` have the same interface.
 */

import type { Logger } from '../contracts/log.ts'
import type { TaskPool } from '../contracts/task-pool.ts'
import type { ReplicaState } from './messages.ts'

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

/** Replicated values of one thread; each is replaced as a whole. */
export class ReplicaCells {
  readonly #cells = new Map<string, ReplicaCell>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  /** The cell of a replica; a new one has the initial value and version 0. */
  cell(name: string, initial: unknown): ReplicaCell {
    const known = this.#cells.get(name)
    if (known !== undefined) return known
    const cell: ReplicaCell = { current: initial, version: 0, listeners: [] }
    this.#cells.set(name, cell)
    return cell
  }

  /**
   * Replaces the value and calls the listeners; a version that is not newer has no effect.
   * @returns resolves when the promises of the listeners have settled; null if no listener returned one
   */
  swap(name: string, next: ReplicaState): Promise<unknown> | null {
    const cell = this.cell(name, undefined)
    if (next.version <= cell.version) return null
    cell.version = next.version
    cell.current = next.value
    const pending: Promise<unknown>[] = []
    for (const listener of cell.listeners) {
      try {
        const result = listener(next.value)
        if (result instanceof Promise) pending.push(result)
      } catch (err) {
        this.#log.error({ err, replica: name }, 'replica listener failed')
      }
    }
    return pending.length === 0 ? null : Promise.allSettled(pending)
  }

  version(name: string): number {
    return this.#cells.get(name)?.version ?? 0
  }

  /** Everything published so far, for a thread that is about to start. */
  published(): Record<string, ReplicaState> {
    const states: Record<string, ReplicaState> = {}
    for (const [name, { current, version }] of this.#cells) {
      if (version > 0) states[name] = { value: current, version }
    }
    return states
  }
}
