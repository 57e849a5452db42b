/**
 * Whether the database works, for all threads of the gateway: control checks it once a second, and a thread that cannot
 * connect reports it at once. While it is down, operations fail immediately, and only control tries to connect.
 */
import { GatewayError, type Logger, messageOf, settlesWithin } from '#kernel'
import { RepeatedWork } from '#shared'

/** States of the shared cell; 0 before the first check. */
const UP = 1
const UNREACHABLE = 2
const READ_ONLY = 3
const UNSUITABLE = 4

/** By state; null if it works. Clients see these texts. */
const PROBLEMS: readonly (string | null)[] = [
  'the database has not been reached yet',
  null,
  'the database is unreachable',
  'the database is read-only',
  'the database cannot be used',
]

/** Pause between two checks, milliseconds. */
const CHECK_PAUSE_MS = 1_000

export class DatabaseHealth {
  static readonly BYTES = 4
  readonly #cell: Int32Array

  /** @param memory BYTES that all threads share, zeroed when new */
  constructor(memory: SharedArrayBuffer) {
    this.#cell = new Int32Array(memory)
  }

  /** Why operations fail; null while the database works. */
  problem(): string | null {
    return PROBLEMS[Atomics.load(this.#cell, 0)] ?? null
  }

  /** A connection attempt failed. */
  onUnreachable(): void {
    Atomics.compareExchange(this.#cell, 0, UP, UNREACHABLE)
  }

  set(state: number): void {
    Atomics.store(this.#cell, 0, state)
  }
}

export interface MonitoredDatabase {
  /** Connects and runs migrations. @throws database_unreachable, database_unsuitable */
  migrate(): Promise<void>
  /** @returns whether it accepts writes @throws if it does not respond in time */
  ping(): Promise<boolean>
}

/** Checks the database from control, and brings its tables up to date when it is first reached. */
export class DatabaseMonitor {
  readonly #database: MonitoredDatabase
  readonly #health: DatabaseHealth
  readonly #log: Pick<Logger, 'info' | 'warn'>
  readonly #first = Promise.withResolvers<void>()
  #isMigrated = false
  #problem: string | null = null
  readonly #checks = new RepeatedWork(async () => {
    await this.#check()
    return CHECK_PAUSE_MS
  })

  constructor(database: MonitoredDatabase, health: DatabaseHealth, log: Pick<Logger, 'info' | 'warn'>) {
    this.#database = database
    this.#health = health
    this.#log = log
    this.#first.promise.catch(() => undefined)
  }

  /**
   * Starts the checks.
   * @returns whether the database was reached within `waitMs`; the checks continue otherwise
   * @throws database_unsuitable
   */
  async start(waitMs: number): Promise<boolean> {
    void this.#checks.start()
    return settlesWithin(this.#first.promise, waitMs)
  }

  async stop(): Promise<void> {
    await this.#checks.stop()
  }

  /** Never rejects. */
  async #check(): Promise<void> {
    try {
      if (!this.#isMigrated) await this.#database.migrate()
      this.#isMigrated = true
      this.#became((await this.#database.ping()) ? UP : READ_ONLY, null)
    } catch (error) {
      const isUnsuitable = error instanceof GatewayError && error.code === 'database_unsuitable'
      this.#became(isUnsuitable ? UNSUITABLE : UNREACHABLE, error)
    }
  }

  #became(state: number, error: unknown): void {
    this.#health.set(state)
    const before = this.#problem
    this.#problem = PROBLEMS[state] ?? null
    if (state === UP) this.#first.resolve()
    else if (state === UNSUITABLE) this.#first.reject(error)
    if (this.#problem === before) return
    if (this.#problem === null) this.#log.info({}, 'record store available again')
    else this.#log.warn({ problem: this.#problem, reason: messageOf(error) }, 'record store unavailable')
  }
}
