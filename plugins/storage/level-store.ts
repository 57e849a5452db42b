/** The Store contract over LevelDB: JSON records in one directory, shared by all threads of the process. */
import { mkdir } from 'node:fs/promises'
import type { Level } from 'level'
import type { Collection, StoreService } from '#kernel'
import { storageErrors } from './errors.ts'
import { checkCollectionName, recordKey, tenantRange } from './record-key.ts'
import type { StoreMetrics } from './store-metrics.ts'

export class LevelStore implements StoreService {
  readonly #dir: string
  readonly #metrics: StoreMetrics | null
  #db: Level<string, string> | null = null

  constructor(dir: string, metrics: StoreMetrics | null = null) {
    this.#dir = dir
    this.#metrics = metrics
  }

  /**
   * Opens the directory; the package is loaded here, so that it costs nothing where storage is not enabled.
   *
   * @throws storage_locked when another process has it, storage_unreadable for every other trouble
   */
  async open(): Promise<void> {
    if (this.#db !== null) return
    try {
      // Records may hold conversations and worker keys: nobody else on the machine may read them.
      await mkdir(this.#dir, { recursive: true, mode: 0o700 })
      const { Level } = await import('level')
      // multithreading is an option of the native implementation, unknown to the types of the portable one.
      const options = { keyEncoding: 'utf8', valueEncoding: 'utf8', multithreading: true }
      const db = new Level<string, string>(this.#dir, options)
      await db.open()
      this.#db = db
    } catch (error) {
      throw toOpenError(this.#dir, error)
    }
  }

  async close(): Promise<void> {
    const db = this.#db
    this.#db = null
    await db?.close()
  }

  /** @throws invalid_collection_name */
  collection<T>(name: string): Collection<T> {
    checkCollectionName(name)
    return {
      get: async (tenant, id) => {
        const key = recordKey(name, tenant, id)
        const json = await this.#run('read', name, (db) => db.get(key))
        return json === undefined ? undefined : (JSON.parse(json) as T)
      },
      put: async (tenant, id, value) => {
        const key = recordKey(name, tenant, id)
        const json = JSON.stringify(value)
        await this.#run('write', name, (db) => db.put(key, json))
      },
      delete: async (tenant, id) => {
        const key = recordKey(name, tenant, id)
        await this.#run('delete', name, (db) => db.del(key))
      },
      list: async (tenant) => {
        const { from, to } = tenantRange(name, tenant)
        const rows = await this.#run('read', name, (db) => db.values({ gte: from, lt: to }).all())
        return rows.map((json) => JSON.parse(json) as T)
      },
    }
  }

  /** @throws storage_not_open (503), or storage_failed (500) with the database's error as its cause */
  async #run<R>(
    verb: string,
    collection: string,
    act: (db: Level<string, string>) => Promise<R>,
  ): Promise<R> {
    if (this.#db === null) throw storageErrors.storage_not_open()
    const startedAtMs = performance.now()
    try {
      const result = await act(this.#db)
      this.#metrics?.onDone(verb, 'success', startedAtMs)
      return result
    } catch (cause) {
      this.#metrics?.onDone(verb, 'error', startedAtMs)
      throw storageErrors.storage_failed.with({ cause }, verb, collection)
    }
  }
}

function toOpenError(dir: string, error: unknown) {
  // The database wraps what happened: LEVEL_DATABASE_NOT_OPEN with the reason as its cause.
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if ((reason as { code?: string }).code === 'LEVEL_LOCKED') {
    return storageErrors.storage_locked.with({ cause: error }, dir)
  }
  const problem = reason instanceof Error ? reason.message : String(reason)
  return storageErrors.storage_unreadable.with({ cause: error }, dir, problem)
}
