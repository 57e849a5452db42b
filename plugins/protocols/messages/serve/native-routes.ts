/**
 * Which engines have the route that they describe: one that has not is asked for chat instead, from its first 404 on.
 */
import type { RouteMemory, WorkerBalance, WorkerEntry } from '#kernel'

/** What an engine without the route, or without the method, answers. */
const NO_SUCH_ROUTE: ReadonlySet<number> = new Set([404, 405])
/** Names of models that workers for any model are asked for are the clients' to choose. */
const MAX_SURE = 1_024

export class NativeRoutes implements RouteMemory {
  readonly #balance: Pick<WorkerBalance, 'workers' | 'workersOf' | 'canonicalModel'>
  /** Whether the route is there, by the id of a worker that has answered. */
  readonly #found = new Map<string, boolean>()
  /** Models whose workers all have it. */
  readonly #sure = new Set<string>()
  #table: readonly WorkerEntry[] | null = null

  constructor(balance: Pick<WorkerBalance, 'workers' | 'workersOf' | 'canonicalModel'>) {
    this.#balance = balance
  }

  /** Every worker of the model has shown that the route is there, or can be asked in no other way. */
  isSure(named: string): boolean {
    const { workers } = this.#balance
    if (workers !== this.#table) this.#forgetGone(workers)
    const model = this.#balance.canonicalModel(named)
    if (this.#sure.has(model)) return true
    const all = this.#balance.workersOf(model)
    if (!all.every((worker) => !mayLack(worker) || this.#found.get(worker.id) === true)) return false
    if (this.#sure.size >= MAX_SURE) this.#sure.clear()
    this.#sure.add(model)
    return true
  }

  lacks(worker: WorkerEntry): boolean {
    return this.#found.get(worker.id) === false
  }

  answered(worker: WorkerEntry, status: number): boolean {
    if (!mayLack(worker)) return false
    const isMissing = NO_SUCH_ROUTE.has(status) && this.#found.get(worker.id) !== true
    // A refusal of another kind says nothing of the route.
    if (isMissing || status < 400) this.#found.set(worker.id, !isMissing)
    return isMissing
  }

  #forgetGone(workers: readonly WorkerEntry[]): void {
    this.#table = workers
    this.#sure.clear()
    const ids = new Set(workers.map(({ id }) => id))
    for (const id of this.#found.keys()) if (!ids.has(id)) this.#found.delete(id)
  }
}

/** A vendor is asked in its own format or not at all. */
function mayLack({ apis }: WorkerEntry): boolean {
  return apis.includes('chat')
}
