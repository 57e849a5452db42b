/** The Store contract over PostgreSQL: JSON records in one table. */
import { type Change, type Collection, GatewayError, type StoreService, type WriteOptions } from '#kernel'
import {
  checkCollectionName,
  checkKeyPart,
  makeVersionStamps,
  runStoreOperation,
  type StoreMetrics,
  WriteQueue,
} from '#shared'
import type { PostgresConfig } from './config.ts'
import { Connections, isUnavailable } from './connections.ts'
import type { DatabaseHealth, MonitoredDatabase } from './database-health.ts'
import { postgresErrors } from './errors.ts'
import { migrate } from './migrations.ts'
import { PgCollection } from './pg-collection.ts'
import { applyWrites, type PreparedWrite, prepareWrite } from './prepared-write.ts'

const BOOT_PAUSE_MS = 250

export interface PgStoreOptions {
  readonly metrics?: StoreMetrics
  /** Of all threads. Default: each operation tries to connect. */
  readonly health?: DatabaseHealth
  readonly onIdleError?: (error: Error) => void
}

export class PgStore implements StoreService, MonitoredDatabase {
  readonly #config: PostgresConfig
  readonly #metrics: StoreMetrics | null
  readonly #connections: Connections
  readonly #writes: WriteQueue<PreparedWrite, boolean>
  readonly #nextVersion = makeVersionStamps()

  constructor(config: PostgresConfig, options: PgStoreOptions = {}) {
    this.#config = config
    this.#metrics = options.metrics ?? null
    this.#connections = new Connections(config, options.onIdleError ?? (() => undefined), options.health)
    this.#writes = new WriteQueue(
      (writes) => applyWrites(this.#connections, config.schema, writes),
      config.maxWaitingBytes,
      config.maxWaiting,
    )
  }

  /** Prepares the pool; connections are opened when needed. */
  async open(): Promise<void> {
    await this.#connections.open()
  }

  /**
   * Waits for the database and runs migrations.
   * @throws database_unreachable, database_unsuitable
   */
  async prepare(): Promise<void> {
    const deadline = performance.now() + this.#config.bootWaitMs
    for (;;) {
      try {
        return await this.migrate()
      } catch (error) {
        const isUnreachable = error instanceof GatewayError && error.code === 'database_unreachable'
        if (!isUnreachable || performance.now() >= deadline) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, BOOT_PAUSE_MS))
    }
  }

  async migrate(): Promise<void> {
    try {
      await this.#connections.withClient((client) => migrate(client, this.#config.schema))
    } catch (error) {
      if (error instanceof GatewayError) throw error
      // Waiting does not help if the server rejects the connection or a statement.
      const problem = error as Error
      const { database_unreachable: unreachable, database_unsuitable: unsuitable } = postgresErrors
      throw (isUnavailable(problem) ? unreachable : unsuitable).with({ cause: error }, problem.message)
    }
  }

  async ping(): Promise<boolean> {
    const sql = "SELECT current_setting('transaction_read_only') AS setting"
    return this.#connections.withClient(async (client) => {
      const query = { text: sql, query_timeout: this.#config.connectTimeoutMs }
      const { rows } = await client.query<{ setting: string }>(query)
      return rows[0]?.setting === 'off'
    })
  }

  /** Finishes pending writes first. */
  async close(): Promise<void> {
    await this.#writes.idle()
    await this.#connections.close()
  }

  /** @throws invalid_collection_name */
  collection<T>(name: string, isValid: (value: unknown) => boolean = () => true): Collection<T> {
    checkCollectionName(name)
    return new PgCollection<T>(
      name,
      isValid,
      (changes, options) => this.write(changes, options),
      `${this.#config.schema}.records`,
      (sql, values) =>
        runStoreOperation(this.#metrics, 'read', name, () => this.#connections.query(sql, values, true)),
    )
  }

  async write(changes: readonly Change[], options: WriteOptions = {}): Promise<string | null> {
    for (const { collection, tenant, id } of changes) {
      checkCollectionName(collection)
      checkKeyPart('tenant', tenant)
      checkKeyPart('id', id)
    }
    const version = this.#nextVersion()
    const { durability = 'relaxed' } = options
    const write = prepareWrite(changes, version, durability, this.#config.maxRecordBytes)
    const verb = changes.every(({ kind }) => kind === 'delete') ? 'delete' : 'write'
    const isDone = await runStoreOperation(this.#metrics, verb, changes[0]?.collection ?? '', () =>
      // A failed condition fails the statement, which must not be that of other writes.
      write.conditions.length === 0 ? this.#writes.add(write) : this.#writes.addAlone(write),
    )
    return isDone ? version : null
  }

  /**
   * Deletes expired records; gateways that do so at the same time do not wait for each other.
   * @returns the number deleted; fewer than `limit` if none is left
   */
  async sweep(limit: number): Promise<number> {
    const table = `${this.#config.schema}.records`
    const sql = `
      WITH gone AS (
        DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM ${table} WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED
        )) RETURNING 1
      )
      SELECT count(*)::int AS count FROM gone`
    const rows = await this.#connections.query<{ count: number }>(sql, [Date.now(), limit], true)
    return rows[0]?.count ?? 0
  }
}
