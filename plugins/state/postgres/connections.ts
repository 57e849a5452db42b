/**
 * The connections of one thread: a pool with limits of time and length. Each statement is a transaction of its own. While
 * the server is gone, operations fail at once between two tries to reach it, so that nothing piles up.
 */
import { readFile } from 'node:fs/promises'
import type { Pool, PoolClient, PoolConfig, QueryResultRow } from 'pg'
import { storeErrors } from '#shared'
import type { PostgresConfig } from './config.ts'

/** After a failed try to connect, others are not made to wait for one. */
const DOWN_PAUSE_MS = 500
/** The client gives up a little after the server should have. */
const ANSWER_GRACE_MS = 1_000
/** Serialisation failure, deadlock: the same statement again may do. */
const TRY_AGAIN = new Set(['40001', '40P01'])
const TRIES = 4

/** Classes of server errors that say nothing about the statement: connection, resources, operator, system. */
const UNAVAILABLE_CLASSES = new Set(['08', '53', '57', '58'])
const READ_ONLY = '25006'

export class Connections {
  readonly #config: PostgresConfig
  readonly #onIdleError: (error: Error) => void
  #pool: Pool | null = null
  #waiting = 0
  #downUntilMs = 0
  /** When a connection was last had, or a statement answered. */
  #heardAtMs = 0

  /** @param onIdleError hears of connections that broke while nobody used them */
  constructor(config: PostgresConfig, onIdleError: (error: Error) => void) {
    this.#config = config
    this.#onIdleError = onIdleError
  }

  async open(): Promise<void> {
    if (this.#pool !== null) return
    const { maxConnections, connectTimeoutMs, statementTimeoutMs } = this.#config
    // Loaded here, so that the package costs nothing where the plugin is not enabled.
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
    // A connection that breaks under a statement fails that statement; its event, unheard, would end the process.
    pool.on('connect', (client) => client.on('error', () => undefined))
    this.#pool = pool
  }

  async close(): Promise<void> {
    const pool = this.#pool
    this.#pool = null
    await pool?.end()
  }

  /** A connection of one's own for some statements. @throws storage_not_open, or what connecting failed with */
  async withClient<R>(act: (client: PoolClient) => Promise<R>): Promise<R> {
    if (this.#pool === null) throw storeErrors.storage_not_open()
    const client = await this.#pool.connect()
    this.#heard()
    try {
      return await act(client)
    } finally {
      client.release()
    }
  }

  /**
   * Runs one statement.
   * @param isRepeatable it may be sent again when the connection broke and nobody knows whether it was done
   * @throws storage_overloaded, storage_unavailable, storage_not_open, or the server's error
   */
  async query<Row extends QueryResultRow>(
    text: string,
    values: unknown[],
    isRepeatable: boolean,
  ): Promise<Row[]> {
    if (this.#waiting >= this.#config.maxWaiting) throw storeErrors.storage_overloaded()
    this.#waiting++
    try {
      return await this.#tries<Row>(text, values, isRepeatable)
    } finally {
      this.#waiting--
    }
  }

  async #tries<Row extends QueryResultRow>(
    text: string,
    values: unknown[],
    isRepeatable: boolean,
  ): Promise<Row[]> {
    for (let left = TRIES - 1; ; left--) {
      const pool = this.#pool
      if (pool === null) throw storeErrors.storage_not_open()
      const client = await this.#connect(pool)
      let problem: Error | undefined
      try {
        const { rows } = await client.query<Row>(text, values)
        this.#heard()
        return rows
      } catch (error) {
        problem = error as Error
        const isGone = isUnavailable(problem)
        const isWorthAnother = TRY_AGAIN.has(codeOf(problem)) || (isGone && isRepeatable)
        if (left === 0 || !isWorthAnother) {
          throw isGone
            ? storeErrors.storage_unavailable.with({ cause: error }, 'the database does not answer')
            : error
        }
      } finally {
        // A connection that failed, or still waits for an answer, is not used again.
        client.release(problem !== undefined && isUnavailable(problem))
      }
    }
  }

  #heard(): void {
    this.#heardAtMs = performance.now()
    this.#downUntilMs = 0
  }

  async #connect(pool: Pool): Promise<PoolClient> {
    if (performance.now() < this.#downUntilMs && pool.idleCount === 0) {
      throw storeErrors.storage_unavailable('the database cannot be reached')
    }
    const startedAtMs = performance.now()
    try {
      const client = await pool.connect()
      this.#heard()
      return client
    } catch (cause) {
      // One that was begun while the server was away may fail when it is back: others have been answered since.
      if (this.#heardAtMs < startedAtMs) this.#downUntilMs = performance.now() + DOWN_PAUSE_MS
      throw storeErrors.storage_unavailable.with({ cause }, 'the database cannot be reached')
    }
  }
}

/** The server's five characters, or Node's word; empty when there is neither. */
export function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code ?? '')
}

/** Not the statement's fault: the connection, the server's state, or its time limit. */
export function isUnavailable(error: Error): boolean {
  const code = codeOf(error)
  if (code.length === 5 && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E')) {
    return UNAVAILABLE_CLASSES.has(code.slice(0, 2)) || code === READ_ONLY
  }
  // Errors that do not come from the server: sockets, the client's own time limits, a connection that ended.
  return !('severity' in error)
}

async function tlsOptions({ tls }: PostgresConfig): Promise<Pick<PoolConfig, 'ssl'>> {
  if (tls.mode === 'url') return {}
  if (tls.mode === 'off') return { ssl: false }
  const read = async (file: string | null) => (file === null ? undefined : await readFile(file, 'utf8'))
  const [ca, cert, key] = await Promise.all([read(tls.caFile), read(tls.certFile), read(tls.keyFile)])
  return { ssl: { rejectUnauthorized: true, ca, cert, key } }
}
