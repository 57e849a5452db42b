/** Workers on disk: those that were registered through the API and come back after a restart. */
import { type Collection, GATEWAY_TENANT, type Logger, type StoreService } from '#kernel'
import type { WorkerSpec } from './spec.ts'
import type { Findings, Worker } from './worker.ts'

export interface SavedWorker {
  readonly id: string
  /** With its api_key: a secret at rest. */
  readonly spec: WorkerSpec
  readonly findings: Findings
}

export class SavedWorkers {
  readonly #collection: Collection<SavedWorker> | null
  readonly #log: Logger
  /** Writes go one after the other, so that the last change of a worker is the one that stays. */
  #lastWrite: Promise<void> = Promise.resolve()

  /** @param store undefined keeps nothing */
  constructor(store: StoreService | undefined, log: Logger) {
    this.#collection = store?.collection<SavedWorker>('workers') ?? null
    this.#log = log
  }

  async load(): Promise<readonly SavedWorker[]> {
    return (await this.#collection?.list(GATEWAY_TENANT)) ?? []
  }

  /** Workers of the configuration are not kept: the configuration brings them back. */
  save(worker: Worker): Promise<void> {
    if (worker.origin === 'config') return Promise.resolve()
    const { id, spec, findings } = worker
    return this.#write(spec.url, (collection) => collection.put(GATEWAY_TENANT, id, { id, spec, findings }))
  }

  drop(worker: Worker): Promise<void> {
    return this.#write(worker.spec.url, (collection) => collection.delete(GATEWAY_TENANT, worker.id))
  }

  /** A worker that is not saved still serves: the gateway says so and goes on. */
  #write(url: string, write: (collection: Collection<SavedWorker>) => Promise<void>): Promise<void> {
    const collection = this.#collection
    if (collection === null) return Promise.resolve()
    this.#lastWrite = this.#lastWrite
      .then(() => write(collection))
      .catch((error: unknown) => this.#log.error({ worker: url, err: error }, 'worker is not saved'))
    return this.#lastWrite
  }
}
