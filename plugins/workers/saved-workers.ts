/** Workers on disk: those that were registered through the API and come back after a restart. */
import { type Collection, GATEWAY_TENANT, type Logger, type StoreService } from '#kernel'
import type { WorkerSpec } from './spec.ts'
import type { Findings, Worker } from './worker.ts'
import { workerKey } from './worker-url.ts'

export interface SavedWorker {
  readonly id: string
  /** With its api_key: a secret at rest. */
  readonly spec: WorkerSpec
  readonly findings: Findings
  /** Absent when the engine is one worker. */
  readonly rank?: number
}

export class SavedWorkers {
  readonly #collection: Collection<SavedWorker> | null
  readonly #log: Logger
  /** By worker id: writes of one worker go one after the other, so that its last change is the one that stays. */
  readonly #lastWrites = new Map<string, Promise<void>>()

  /** @param store undefined keeps nothing */
  constructor(store: StoreService | undefined, log: Logger) {
    this.#collection = store?.collection<SavedWorker>('workers') ?? null
    this.#log = log
  }

  /** The workers of each engine, in order of their ranks. */
  async load(): Promise<readonly (readonly SavedWorker[])[]> {
    const all = (await this.#collection?.list(GATEWAY_TENANT)) ?? []
    const engines = Map.groupBy(all, ({ spec }) => workerKey(spec.url))
    return [...engines.values()].map((workers) => workers.toSorted((a, b) => (a.rank ?? 0) - (b.rank ?? 0)))
  }

  /** Workers of the configuration are not kept: the configuration brings them back. */
  async save(workers: readonly Worker[]): Promise<void> {
    const kept = workers.filter(({ origin }) => origin !== 'config')
    const writes = kept.map(({ id, spec, findings, rank }) =>
      this.#write(id, spec.url, (collection) =>
        collection.put(GATEWAY_TENANT, id, { id, spec, findings, ...(rank !== null && { rank }) }),
      ),
    )
    await Promise.all(writes)
  }

  async drop(workers: readonly Worker[]): Promise<void> {
    const writes = workers.map(({ id, spec }) =>
      this.#write(id, spec.url, (collection) => collection.delete(GATEWAY_TENANT, id)),
    )
    await Promise.all(writes)
  }

  /** A worker that is not saved still serves: the gateway says so and goes on. */
  async #write(
    id: string,
    url: string,
    write: (collection: Collection<SavedWorker>) => Promise<void>,
  ): Promise<void> {
    const collection = this.#collection
    if (collection === null) return
    const before = this.#lastWrites.get(id) ?? Promise.resolve()
    const done = before
      .then(() => write(collection))
      .catch((error: unknown) => this.#log.error({ worker: url, err: error }, 'worker is not saved'))
    this.#lastWrites.set(id, done)
    await done
    if (this.#lastWrites.get(id) === done) this.#lastWrites.delete(id)
  }
}
