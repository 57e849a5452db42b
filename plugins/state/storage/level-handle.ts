/**
 * The open database of one thread. All threads of the process share one database underneath; when a write to disk has
 * failed, each closes its handle and opens a fresh one, since nothing may be added behind a record that is half written.
 */
import type { Level } from 'level'
import { errorMessage, storeErrors } from '#shared'
import { prepareDataDir, probeRoom } from './data-dir.ts'
import { storageErrors } from './errors.ts'

export type Database = Level<string, string>

/** Cells of the shared memory. */
const EPOCH = 0
const IS_BROKEN = 1
const PROBED_AT = 2
/** Handles that are open, by the parity of the epoch they were opened in. */
const OPEN_COUNTS = 3
export const HANDLE_CELLS = 5

/** How often a thread that does nothing looks whether it has to reopen. */
const LOOK_MS = 250
const PROBE_PAUSE_MS = 500
const NO_ROOM = 'the disk takes nothing, it may be full'
/** A thread that died keeps its count; nobody waits for it longer. */
const REOPEN_WAIT_MS = 5_000
const REOPEN_POLL_MS = 20

const DATABASE_OPTIONS = {
  keyEncoding: 'utf8',
  valueEncoding: 'utf8',
  // Larger than LevelDB's own 4 MiB: fewer, larger tables; a start after a crash reads at most this back.
  writeBufferSize: 16 * 1024 * 1024,
  // Known to the native implementation, not to the types of the portable one.
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

  /** @throws storage_locked when another process has it, storage_unreadable for every other trouble */
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
      // Those who need the database hear of a failure; here it is tried again at the next look.
      if (this.#isStale()) this.#reopen().catch(() => undefined)
    }, LOOK_MS)
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

  /** The database for writing. @throws storage_not_open, storage_unavailable while the disk takes nothing */
  forWriting(): Database | Promise<Database> {
    return this.#isOpen && Atomics.load(this.#cells, IS_BROKEN) !== 0 ? this.#mend() : this.forReading()
  }

  /** After a failed write: no other goes behind it, on any thread, before the database was opened anew. */
  onWriteFailed(): void {
    Atomics.store(this.#cells, IS_BROKEN, 1)
  }

  /** Reads go on with what is open until there is room again; opening needs some too. */
  async #mend(): Promise<Database> {
    const probedAt = Atomics.load(this.#cells, PROBED_AT)
    const now = Math.trunc(performance.timeOrigin + performance.now()) | 0
    const isOurs = ((now - probedAt) | 0) >= PROBE_PAUSE_MS || probedAt === 0
    if (!isOurs || Atomics.compareExchange(this.#cells, PROBED_AT, probedAt, now) !== probedAt) {
      throw storeErrors.storage_unavailable(NO_ROOM)
    }
    try {
      await probeRoom(this.#dir)
    } catch (cause) {
      throw storeErrors.storage_unavailable.with({ cause }, NO_ROOM)
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
      throw storeErrors.storage_unavailable.with({ cause }, NO_ROOM)
    }
  }

  async #openAt(epoch: number): Promise<Database> {
    // Loaded here, so that the package costs nothing where storage is not enabled.
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
  // The database wraps what happened: LEVEL_DATABASE_NOT_OPEN with the reason as its cause.
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if ((reason as { code?: string }).code === 'LEVEL_LOCKED') {
    return storageErrors.storage_locked.with({ cause: error }, dir)
  }
  return storageErrors.storage_unreadable.with({ cause: error }, dir, errorMessage(reason))
}
