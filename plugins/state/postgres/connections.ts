/**
 * Connection pool of one thread with time and queue limits. Each statement is its own transaction. While the server is
 * unreachable, operations fail immediately between connection attempts.
 */
import { readFile } from 'node:fs/promises'
import type { Pool, PoolClient, PoolConfig, QueryResultRow } from 'pg'
import { storageOverloaded, storageUnavailable, storeErrors } from '#shared'
import type { PostgresConfig } from './config.ts'
import type { DatabaseHealth } from './database-health.ts'

/** Time after a failed connection attempt in which operations fail immediately, in milliseconds. */
const DOWN_PAUSE_MS = 500
/** Added to the statement timeout of the server for the timeout of the client, in milliseconds. */
const ANSWER_GRACE_MS = 1_000
/** Serialization failure and deadlock: the statement can be retried. */
const RETRYABLE_CODES = new Set(['40001', '40P01'])
const TRIES = 4
const UNREACHABLE = 'the database is unreachable'

/** Error classes that are not caused by the statement: connection, resources, operator, system. */
const UNAVAILABLE_CLASSES = new Set(['08', '53', '57', '58'])
const READ_ONLY = '25006'

export class Connections {
  readonly #config: PostgresConfig
  readonly #onIdleError: (error: Error) => void
  readonly #health: DatabaseHealth | null
  #pool: Pool | null = null
  #waiting = 0
  #downUntilMs = 0
  /** Time of the last successful connection or statement. */
  #lastSuccessMs = 0

  /**
   * @param onIdleError called when an idle connection breaks
   * @param health of all threads; without it, each thread finds out for itself
   */
  constructor(
    config: PostgresConfig,
    onIdleError: (error: Error) => void,
    health: DatabaseHealth | null = null,
  ) {
    this.#config = config
    this.#onIdleError = onIdleError
    this.#health = health
  }

  async open(): Promise<void> {
    if (this.#pool !== null) return
    const { maxConnections, connectTimeoutMs, statementTimeoutMs } = this.#config
    // Loaded lazily, so that gateways without the plugin do not load the package.
    const { default: pg } = await import('pg')
    const pool = new pg.Pool({
      connectionString: this.#config.url,
      ...(await tlsOptions(this.#config)),
      application_name: 'weir',
      max: maxConnections,
      connectionTimeoutMillis: connectTimeoutMs,
      statement_timeout: statementTimeoutMs,
      query_timeout: statementTimeoutMs + ANSWER_GRACE_MS,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
    })
    pool.on('error', this.#onIdleError)
    // The statement reports a broken connection; without a listener, the event would end the process.
    pool.on('connect', (client) => client.on('error', () => undefined))
    this.#pool = pool
  }

  async close(): Promise<void> {
    const pool = this.#pool
    this.#pool = null
    await pool?.end()
  }

  /** Runs statements on one connection, also while the database is down. @throws storage_not_open, or the driver's error */
  async withClient<R>(act: (client: PoolClient) => Promise<R>): Promise<R> {
    if (this.#pool === null) throw storeErrors.storage_not_open()
    const client = await this.#pool.connect()
    this.#onSuccess()
    return useClient(client, act)
  }

  /**
   * Runs one statement.
   * @param isRepeatable the statement can be repeated if the connection broke during it
   * @throws storage_overloaded, storage_unavailable, storage_not_open, or the server's error
   */
  async query<Row extends QueryResultRow>(
    text: string,
    values: unknown[],
    isRepeatable: boolean,
  ): Promise<Row[]> {
    if (this.#waiting >= this.#config.maxWaiting) throw storageOverloaded()
    this.#waiting++
    try {
      return await this.#queryWithRetry<Row>(text, values, isRepeatable)
    } finally {
      this.#waiting--
    }
  }

  async #queryWithRetry<Row extends QueryResultRow>(
    text: string,
    values: unknown[],
    isRepeatable: boolean,
  ): Promise<Row[]> {
    for (let left = TRIES - 1; ; left--) {
      const pool = this.#pool
      if (pool === null) throw storeErrors.storage_not_open()
      const client = await this.#connect(pool)
      try {
        const { rows } = await useClient(client, () => client.query<Row>(text, values))
        this.#onSuccess()
        return rows
      } catch (error) {
        const isGone = isUnavailable(error as Error)
        const isRetryable = RETRYABLE_CODES.has(codeOf(error)) || (isGone && isRepeatable)
        if (left === 0 || !isRetryable) {
          throw isGone ? storageUnavailable('the database does not respond', error) : error
        }
      }
    }
  }

  #onSuccess(): void {
    this.#lastSuccessMs = performance.now()
    this.#downUntilMs = 0
  }

  async #connect(pool: Pool): Promise<PoolClient> {
    const outage = this.#health?.problem() ?? null
    if (outage !== null) throw storageUnavailable(outage)
    if (performance.now() < this.#downUntilMs && pool.idleCount === 0) throw storageUnavailable(UNREACHABLE)
    const startedAtMs = performance.now()
    try {
      const client = await pool.connect()
      this.#onSuccess()
      return client
    } catch (cause) {
      // Ignores the failure of an attempt that started before the last success.
      if (this.#lastSuccessMs < startedAtMs) {
        this.#downUntilMs = performance.now() + DOWN_PAUSE_MS
        // A server that rejects connections, such as too many, is not down for all threads.
        if (!('severity' in (cause as object))) this.#health?.onUnreachable()
      }
      throw storageUnavailable(UNREACHABLE, cause)
    }
  }
}

/** Releases the client afterwards; a connection that failed or is still busy is not reused. */
async function useClient<R>(client: PoolClient, act: (client: PoolClient) => Promise<R>): Promise<R> {
  let isBroken = false
  try {
    return await act(client)
  } catch (error) {
    isBroken = isUnavailable(error as Error)
    throw error
  } finally {
    client.release(isBroken)
  }
}

/** SQLSTATE of the server or code of Node; empty if there is none. */
export function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code ?? '')
}

/** Whether the error concerns the connection or the server, not the statement. */
export function isUnavailable(error: Error): boolean {
  const code = codeOf(error)
  if (code.length === 5 && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E')) {
    return UNAVAILABLE_CLASSES.has(code.slice(0, 2)) || code === READ_ONLY
  }
  // Errors without a severity come from the client: sockets, timeouts, closed connections.
  return !('severity' in error)
}

async function tlsOptions({ tls }: PostgresConfig): Promise<Pick<PoolConfig, 'ssl'>> {
  if (tls.mode === 'url') return {}
  if (tls.mode === 'off') return { ssl: false }
  const read = async (file: string | null) => (file === null ? undefined : await readFile(file, 'utf8'))
  const [ca, cert, key] = await Promise.all([read(tls.caFile), read(tls.certFile), read(tls.keyFile)])
  return { ssl: { rejectUnauthorized: true, ca, cert, key } }
}
