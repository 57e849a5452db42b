/** Which adapter speaks to which worker. One registry per thread; what it finds is kept per worker entry. */
import type { EngineAdapter, WorkerBalance, WorkerEntry } from '#kernel'

export class Engines {
  readonly #adapters: EngineAdapter[] = []
  readonly #balance: Pick<WorkerBalance, 'workersOf'>
  /** Entries are immutable, so what was found stays right. */
  #byWorker = new WeakMap<WorkerEntry, EngineAdapter | typeof NOBODY>()
  /** By canonical model; forgotten when the worker table changes. */
  readonly #preparing = new Map<string, readonly EngineAdapter[]>()

  constructor(balance: Pick<WorkerBalance, 'workersOf'>) {
    this.#balance = balance
  }

  add(adapter: EngineAdapter): void {
    this.#adapters.push(adapter)
    this.#adapters.sort((a, b) => (b.rank ?? 0) - (a.rank ?? 0))
    this.#byWorker = new WeakMap()
    this.#preparing.clear()
  }

  /** @param preferred name of an adapter that goes before all others where it accepts the worker */
  of(worker: WorkerEntry, preferred?: string): EngineAdapter | null {
    if (preferred !== undefined) {
      const wanted = this.#adapters.find(({ name }) => name === preferred)
      if (wanted?.accepts(worker)) return wanted
    }
    let found = this.#byWorker.get(worker)
    if (found === undefined) {
      found = this.#adapters.find((adapter) => adapter.accepts(worker)) ?? NOBODY
      this.#byWorker.set(worker, found)
    }
    return found === NOBODY ? null : found
  }

  /** Adapters of the model's workers that have work to do before one is picked. */
  preparing(model: string): readonly EngineAdapter[] {
    let found = this.#preparing.get(model)
    if (found === undefined) {
      const adapters = new Set<EngineAdapter>()
      for (const worker of this.#balance.workersOf(model)) {
        const adapter = this.of(worker)
        if (adapter?.prepare !== undefined) adapters.add(adapter)
      }
      found = [...adapters]
      this.#preparing.set(model, found)
    }
    return found
  }

  onWorkersChanged(): void {
    this.#preparing.clear()
  }
}

const NOBODY = Symbol('no adapter')
