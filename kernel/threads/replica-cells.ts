/** Replicated values of one thread; each is replaced as a whole. */
import type { Logger } from '../contracts/log.ts'
import type { ReplicaCell } from './link.ts'
import type { ReplicaState } from './messages.ts'

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
