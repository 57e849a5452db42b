/** The replicated values of one thread: one reference each, swapped as a whole. */
import type { Logger } from '../contracts/log.ts'
import type { ReplicaCell } from './link.ts'
import type { ReplicaState } from './messages.ts'

export class ReplicaCells {
  readonly #cells = new Map<string, ReplicaCell>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  /** The cell of a replica; one that does not exist yet begins with the initial value, as version 0. */
  cell(name: string, initial: unknown): ReplicaCell {
    const known = this.#cells.get(name)
    if (known !== undefined) return known
    const cell: ReplicaCell = { current: initial, version: 0, listeners: [] }
    this.#cells.set(name, cell)
    return cell
  }

  /**
   * Swaps in a published value and tells the listeners; a version that is not newer changes nothing.
   * @returns what listeners take their time for; null where there is nothing to wait for
   */
  swap(name: string, next: ReplicaState): Promise<unknown> | null {
    const cell = this.cell(name, undefined)
    if (next.version <= cell.version) return null
    cell.version = next.version
    cell.current = next.value
    const pending: Promise<unknown>[] = []
    for (const listener of cell.listeners) {
      try {
        const taken = listener(next.value)
        if (taken instanceof Promise) pending.push(taken)
      } catch (err) {
        // The swap has happened: a listener that fails must not keep the others from seeing it.
        this.#log.error({ err, replica: name }, 'a replica listener failed')
      }
    }
    return pending.length === 0 ? null : Promise.allSettled(pending)
  }

  version(name: string): number {
    return this.#cells.get(name)?.version ?? 0
  }

  /** Everything published so far, for a thread about to start. */
  published(): Record<string, ReplicaState> {
    const states: Record<string, ReplicaState> = {}
    for (const [name, { current, version }] of this.#cells) {
      if (version > 0) states[name] = { value: current, version }
    }
    return states
  }
}
