/** Workers on disk: those that were registered through the API and come back after a restart. */
import { type Change, type Collection, GATEWAY_TENANT, type StoreService } from '#kernel'
import { workerErrors } from './errors.ts'
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
  readonly #store: StoreService | null
  readonly #collection: Collection<SavedWorker> | null
  /** By engine: its writes go one after the other, so that its last change is the one that stays. */
  readonly #lastWrites = new Map<string, Promise<unknown>>()

  /** @param store undefined keeps nothing */
  constructor(store: StoreService | undefined) {
    this.#store = store ?? null
    this.#collection = store?.collection<SavedWorker>('workers') ?? null
  }

  /** The workers of each engine, in order of their ranks. */
  async load(): Promise<readonly (readonly SavedWorker[])[]> {
    const all = (await this.#collection?.list(GATEWAY_TENANT)) ?? []
    const engines = Map.groupBy(all, ({ spec }) => workerKey(spec.url))
    return [...engines.values()].map((workers) => workers.toSorted((a, b) => (a.rank ?? 0) - (b.rank ?? 0)))
  }

  /**
   * All workers of an engine, or none. Those of the configuration are not kept: the configuration brings them back.
   * @throws worker_not_saved (503)
   */
  async save(workers: readonly Worker[]): Promise<void> {
    const kept = workers.filter(({ origin }) => origin !== 'config')
    await this.#write(kept, ({ id, spec, findings, rank }, target) => {
      const value: SavedWorker = { id, spec, findings, ...(rank !== null && { rank }) }
      return { kind: 'put', ...target, value }
    })
  }

  /** @throws worker_not_saved (503); all of them are kept then */
  async drop(workers: readonly Worker[]): Promise<void> {
    await this.#write(workers, (_, target) => ({ kind: 'delete', ...target }))
  }

  async #write(
    workers: readonly Worker[],
    toChange: (worker: Worker, target: { collection: string; tenant: string; id: string }) => Change,
  ): Promise<void> {
    const [store, collection] = [this.#store, this.#collection]
    if (store === null || collection === null || workers.length === 0) return
    const changes = workers.map((worker) =>
      toChange(worker, { collection: collection.name, tenant: GATEWAY_TENANT, id: worker.id }),
    )
    const { url } = workers[0].spec
    const key = workerKey(url)
    const before = this.#lastWrites.get(key) ?? Promise.resolve()
    const done = before.catch(() => undefined).then(() => store.write(changes, { durability: 'synced' }))
    this.#lastWrites.set(key, done)
    try {
      await done
    } catch (cause) {
      throw workerErrors.worker_not_saved.with({ cause }, url, (cause as Error).message)
    } finally {
      if (this.#lastWrites.get(key) === done) this.#lastWrites.delete(key)
    }
  }
}
