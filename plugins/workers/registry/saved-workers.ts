/** Stores workers that were registered through the API, so that a restart restores them. */
import { type Change, type Collection, GATEWAY_TENANT, type StoreService } from '#kernel'
import { SerialByKey } from '#shared'
import { workerErrors } from './errors.ts'
import { isSavedWorker } from './kept-worker.ts'
import type { Findings, Worker } from './worker.ts'
import type { WorkerSpec } from './worker-spec.ts'
import { workerKey } from './worker-url.ts'

export interface SavedWorker {
  readonly id: string
  /** Includes the api_key, in clear text. */
  readonly spec: WorkerSpec
  readonly findings: Findings
  /** Absent if the engine is one worker. */
  readonly rank?: number
}

export class SavedWorkers {
  readonly #store: StoreService | undefined
  readonly #collection: Collection<SavedWorker> | undefined
  /** By engine, so that the last change wins. */
  readonly #writes = new SerialByKey()

  /** @param store undefined disables saving */
  constructor(store: StoreService | undefined) {
    this.#store = store
    this.#collection = store?.collection<SavedWorker>('workers', isSavedWorker)
  }

  /** The workers of each engine, in order of their ranks. */
  async load(): Promise<readonly (readonly SavedWorker[])[]> {
    const all = (await this.#collection?.list(GATEWAY_TENANT)) ?? []
    const engines = Map.groupBy(all, ({ spec }) => workerKey(spec.url))
    return [...engines.values()].map((workers) => workers.toSorted((a, b) => (a.rank ?? 0) - (b.rank ?? 0)))
  }

  /**
   * Saves all workers of an engine or none. Workers of the configuration and of the mesh are not saved.
   * @throws worker_not_saved (503)
   */
  async save(workers: readonly Worker[]): Promise<void> {
    const kept = workers.filter(({ origin }) => origin === 'api')
    await this.#write(kept, ({ id, spec, findings, rank }, target) => {
      const value: SavedWorker = { id, spec, findings, ...(rank !== null && { rank }) }
      return { kind: 'put', ...target, value }
    })
  }

  /** Deletes all or none. @throws worker_not_saved (503) */
  async drop(workers: readonly Worker[]): Promise<void> {
    await this.#write(workers, (_, target) => ({ kind: 'delete', ...target }))
  }

  async #write(
    workers: readonly Worker[],
    toChange: (worker: Worker, target: { collection: string; tenant: string; id: string }) => Change,
  ): Promise<void> {
    const [store, collection] = [this.#store, this.#collection]
    if (store === undefined || collection === undefined || workers.length === 0) return
    const changes = workers.map((worker) =>
      toChange(worker, { collection: collection.name, tenant: GATEWAY_TENANT, id: worker.id }),
    )
    const { url } = workers[0].spec
    try {
      await this.#writes.run(workerKey(url), () => store.write(changes, { durability: 'synced' }))
    } catch (cause) {
      throw workerErrors.worker_not_saved.with({ cause }, url, (cause as Error).message)
    }
  }
}
