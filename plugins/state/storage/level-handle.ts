/**
 * The database handle of one thread. All threads share one database. After a failed write, every thread closes its handle
 * and opens a new one, because nothing may be appended after an incomplete record.
 */

import type { Level } from 'level'
import { type GatewayError, messageOf } from '#kernel'
import { storageUnavailable, storeErrors } from '#shared'
import { prepareDataDir, probeFreeSpace } from './data-dir.ts'
import { storageErrors } from './errors.ts'
import { sharedNowMs } from './write-lock.ts'

export type Database = Level<string, string>

/** Cells of the shared memory. */
const EPOCH = 0
const IS_BROKEN = 1
const PROBED_AT = 2
/** Numbers of open handles, by parity of the epoch in which they were opened. */
const OPEN_COUNTS = 3
export const HANDLE_CELLS = 5

/** Interval at which a thread checks whether it must reopen, or can write again, in milliseconds. */
const CHECK_INTERVAL_MS = 250
const PROBE_PAUSE_MS = 500
const NO_ROOM = 'writing to disk fails, the disk may be full'
/** Maximum wait for other threads to close; the count of a dead thread never drops. */
const REOPEN_WAIT_MS = 5_000
const REOPEN_POLL_MS = 20

const DATABASE_OPTIONS = {
  keyEncoding: 'utf8',
  valueEncoding: 'utf8',
  // LevelDB's default is 4 MiB: larger means fewer tables, and more to replay after a crash.
  writeBufferSize: 16 * 1024 * 1024,
  // An option of the native implementation that the types lack.
  multithreading: true,
}

export class LevelHandle {
  readonly #dir: string
  readonly #cells: Int32Array
  readonly #warn: (message: string) => void
  #db: Database | null = null
  #epoch = 0
  #isOpen = false
  #opening: Promise<Database> | null = null
  #look: NodeJS.Timeout | null = null

  /** @param cells HANDLE_CELLS cells that all threads share */
  constructor(dir: string, cells: Int32Array, warn: (message: string) => void) {
    this.#dir = dir
    this.#cells = cells
    this.#warn = warn
  }

  /** @throws storage_locked if another process uses it, storage_unreadable for other errors */
  async open(): Promise<void> {
    if (this.#isOpen) return
    try {
      const warning = await prepareDataDir(this.#dir)
      if (warning !== null) this.#warn(warning)
      await this.#openAt(Atomics.load(this.#cells, EPOCH))
    } catch (error) {
      throw toOpenError(this.#dir, error)
    }
    this.#isOpen = true
    this.#look = setInterval(() => {
      // Retried at the next check; operations report the error themselves.
      if (this.problem() !== null) this.#recover().catch(() => undefined)
      else if (this.#isStale()) this.#reopen().catch(() => undefined)
    }, CHECK_INTERVAL_MS)
    this.#look.unref()
  }

  async close(): Promise<void> {
    this.#isOpen = false
    if (this.#look !== null) clearInterval(this.#look)
    await this.#opening?.catch(() => undefined)
    await this.#closeDb()
  }

  /** The database for reading. @throws storage_not_open */
  forReading(): Database | Promise<Database> {
    if (!this.#isOpen) throw storeErrors.storage_not_open()
    return this.#db !== null && !this.#isStale() ? this.#db : this.#reopen()
  }

  /** The database for writing. @throws storage_not_open, storage_unavailable while writing to disk fails */
  forWriting(): Database | Promise<Database> {
    return this.#isOpen && this.problem() !== null ? this.#recover() : this.forReading()
  }

  /** Why writes fail on all threads; null while they work. */
  problem(): string | null {
    return Atomics.load(this.#cells, IS_BROKEN) === 0 ? null : NO_ROOM
  }

  /**
   * Blocks writes on every thread until the database has been reopened.
   * @returns storage_unavailable, as for the writes that follow
   */
  onWriteFailed(cause: unknown): GatewayError {
    Atomics.store(this.#cells, IS_BROKEN, 1)
    return storageUnavailable(NO_ROOM, cause)
  }

  /** Reopens once the disk has free space; until then, reads continue on the open handle. */
  async #recover(): Promise<Database> {
    const probedAt = Atomics.load(this.#cells, PROBED_AT)
    const now = sharedNowMs()
    const isOurs = ((now - probedAt) | 0) >= PROBE_PAUSE_MS || probedAt === 0
    if (!isOurs || Atomics.compareExchange(this.#cells, PROBED_AT, probedAt, now) !== probedAt) {
      throw storageUnavailable(NO_ROOM)
    }
    try {
      await probeFreeSpace(this.#dir)
    } catch (cause) {
      throw storageUnavailable(NO_ROOM, cause)
    }
    if (Atomics.exchange(this.#cells, IS_BROKEN, 0) === 1) Atomics.add(this.#cells, EPOCH, 1)
    return this.forReading()
  }

  #isStale(): boolean {
    return this.#db === null || Atomics.load(this.#cells, EPOCH) !== this.#epoch
  }

  #reopen(): Promise<Database> {
    this.#opening ??= this.#openAnew().finally(() => {
      this.#opening = null
    })
    return this.#opening
  }

  async #openAnew(): Promise<Database> {
    const epoch = Atomics.load(this.#cells, EPOCH)
    await this.#closeDb()
    const before = OPEN_COUNTS + ((epoch - 1) & 1)
    const deadline = performance.now() + REOPEN_WAIT_MS
    while (Atomics.load(this.#cells, before) > 0 && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, REOPEN_POLL_MS))
    }
    Atomics.store(this.#cells, before, 0)
    try {
      return await this.#openAt(epoch)
    } catch (cause) {
      throw storageUnavailable(NO_ROOM, cause)
    }
  }

  async #openAt(epoch: number): Promise<Database> {
    // Loaded lazily, so that gateways without storage do not load the package.
    const { Level } = await import('level')
    const db: Database = new Level<string, string>(this.#dir, DATABASE_OPTIONS)
    await db.open()
    Atomics.add(this.#cells, OPEN_COUNTS + (epoch & 1), 1)
    this.#db = db
    this.#epoch = epoch
    return db
  }

  async #closeDb(): Promise<void> {
    const db = this.#db
    if (db === null) return
    this.#db = null
    await db.close()
    Atomics.sub(this.#cells, OPEN_COUNTS + (this.#epoch & 1), 1)
  }
}

function toOpenError(dir: string, error: unknown) {
  // The library reports LEVEL_DATABASE_NOT_OPEN with the reason as its cause.
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if ((reason as { code?: string }).code === 'LEVEL_LOCKED') {
    return storageErrors.storage_locked.with({ cause: error }, dir)
  }
  return storageErrors.storage_unreadable.with({ cause: error }, dir, messageOf(reason))
}
