/** Finds the engine adapter of a worker, and prepares prompts. One registry per thread. */
import {
  type EngineAdapter,
  GatewayError,
  type GenerationRequest,
  type PreparedPrompt,
  type RelayContext,
  type WorkerBalance,
  type WorkerEntry,
} from '#kernel'

export class Engines {
  readonly #adapters: EngineAdapter[] = []
  readonly #balance: Pick<WorkerBalance, 'workers' | 'workersOf'>
  /** Entries are immutable, so a result stays valid; null for none. */
  #byWorker = new WeakMap<WorkerEntry, EngineAdapter | null>()
  /** By canonical model; cleared when the worker table changes. */
  readonly #preparing = new Map<string, readonly EngineAdapter[]>()
  #workers: readonly WorkerEntry[] | null = null

  constructor(balance: Pick<WorkerBalance, 'workers' | 'workersOf'>) {
    this.#balance = balance
  }

  add(adapter: EngineAdapter): void {
    this.#adapters.push(adapter)
    this.#adapters.sort((a, b) => (b.rank ?? 0) - (a.rank ?? 0))
    this.#byWorker = new WeakMap()
    this.#preparing.clear()
  }

  /** @param preferred name of an adapter that takes precedence if it accepts the worker */
  of(worker: WorkerEntry, preferred?: string): EngineAdapter | null {
    if (preferred !== undefined) {
      const wanted = this.#adapters.find(({ name }) => name === preferred)
      if (wanted?.accepts(worker)) return wanted
    }
    let found = this.#byWorker.get(worker)
    if (found === undefined) {
      found = this.#adapters.find((adapter) => adapter.accepts(worker)) ?? null
      this.#byWorker.set(worker, found)
    }
    return found
  }

  workersOf(model: string): readonly WorkerEntry[] {
    return this.#balance.workersOf(model)
  }

  /** Workers of the model; all if it is null. @param model as the client names it */
  candidates(model: string | null): readonly WorkerEntry[] {
    return model === null ? this.#balance.workers : this.workersOf(model)
  }

  /** Adapters of the model's workers that prepare the prompt before a worker is picked. */
  preparing(model: string): readonly EngineAdapter[] {
    const { workers } = this.#balance
    if (workers !== this.#workers) this.#preparing.clear()
    this.#workers = workers
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
}

export interface PreparedPrompts {
  readonly byAdapter: ReadonlyMap<EngineAdapter, PreparedPrompt>
  /** For policies: those of the first adapter that tokenised the prompt; null if none did. */
  readonly tokenIds: Uint32Array | null
  /** Adapters whose workers cannot serve the request, with the reason. */
  readonly unable: Map<EngineAdapter, GatewayError>
}

const BAD_REQUEST = 400

/** True if the request is at fault: workers of another format may serve it. */
export function isUnable(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.status === BAD_REQUEST
}

/** Prepares the prompt once for all attempts. @throws errors of an adapter for which the request is not at fault */
export async function preparePrompts(
  adapters: readonly EngineAdapter[],
  source: { request: GenerationRequest; model: string; ctx: RelayContext },
): Promise<PreparedPrompts> {
  const byAdapter = new Map<EngineAdapter, PreparedPrompt>()
  const unable = new Map<EngineAdapter, GatewayError>()
  let tokenIds: Uint32Array | null = null
  for (const adapter of adapters) {
    try {
      const prepared = await adapter.prepare?.(source.request, source.model, source.ctx)
      if (prepared === undefined) continue
      byAdapter.set(adapter, prepared)
      tokenIds ??= prepared.tokenIds
    } catch (error) {
      if (!isUnable(error)) throw error
      unable.set(adapter, error)
    }
  }
  return { byAdapter, tokenIds, unable }
}
