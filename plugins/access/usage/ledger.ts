/**
 * The ledger: adds usage to the records of the store. It runs on control, which alone writes the records of this gateway.
 * Usage that arrives while a write runs forms the next one. Each write is atomic and numbered, so that a write of unknown
 * outcome is repeated only if it did not happen. While the store fails, usage is kept for later and its callers are rejected.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Change,
  type Collection,
  GATEWAY_TENANT,
  type GatewayError,
  type Logger,
  type StoredRecord,
  type StoreService,
  settlesWithin,
} from '#kernel'
import { checkKeyPart, FailureLog, isUnreadableRecord, LabelLimit, OTHER, uuidV7 } from '#shared'
import { usageErrors } from './errors.ts'
import {
  addUsage,
  DAY_MS,
  isUsageRow,
  NANO,
  noUsage,
  rowId,
  type StoredUsageRow,
  type UsageRow,
} from './usage-record.ts'

const RECORDS = 'usage'
const WRITERS = 'usage-writers'
/** Further models are recorded as `other`: wildcard workers take any name. */
const MAX_MODELS = 1_000
/** Records whose current value is kept in memory. */
const MAX_KNOWN = 10_000
const RETRY_MS = 1_000
/** Longest wait of `stop` for a store that does not respond. */
const STOP_MS = 2_000
const WRITER_MS = DAY_MS

/** Records of the store. Readable on every thread. */
export function openUsageRecords(store: StoreService): Collection<StoredUsageRow> {
  return store.collection<StoredUsageRow>(RECORDS, isUsageRow)
}

interface Entry {
  readonly row: UsageRow
  /** Null: the record does not exist. Undefined: not read yet. */
  stored: StoredRecord<StoredUsageRow> | null | undefined
}

interface Group {
  readonly rows: ReadonlyMap<string, UsageRow>
  readonly waiting: PromiseWithResolvers<void>
  readonly number: number
}

interface Reading {
  readonly run: () => Promise<void>
  readonly reject: (error: unknown) => void
}

export interface LedgerOptions {
  readonly keepDays: number
  /** Waits for the disk. */
  readonly isSynced: boolean
  /** Called after each write. */
  readonly onStored: (rows: Iterable<UsageRow>) => void
}

export class Ledger {
  readonly #store: StoreService
  readonly #records: Collection<StoredUsageRow>
  readonly #writers: Collection<number>
  readonly #options: LedgerOptions
  readonly #log: Logger
  readonly #failures: FailureLog
  readonly #writer = uuidV7()
  readonly #models = new LabelLimit(MAX_MODELS)
  /** By tenant and id. */
  readonly #known = new Map<string, StoredRecord<StoredUsageRow> | null>()
  #pending = new Map<string, UsageRow>()
  /** The running write; also one that was given up. */
  #writing: Group | null = null
  /** Of the last write; null while the store works. */
  #failure: GatewayError | null = null
  readonly #readings: Reading[] = []
  #waiting = Promise.withResolvers<void>()
  #number = 0
  #running: Promise<void> | null = null
  readonly #stopping = new AbortController()

  constructor(store: StoreService, options: LedgerOptions, log: Logger) {
    this.#store = store
    this.#records = openUsageRecords(store)
    this.#writers = store.collection(WRITERS, (value) => typeof value === 'number')
    this.#options = options
    this.#log = log
    this.#failures = new FailureLog(log, 'usage could not be stored')
  }

  /**
   * Resolves when the usage, and all before it, is stored. After a failure it is stored as soon as the store works again.
   * @throws usage_not_recorded (503) if it is not stored at the first attempt, or the store fails
   */
  add(rows: readonly UsageRow[]): Promise<void> {
    for (const row of rows) this.#merge(this.#bounded(row))
    if (this.#failure !== null) return Promise.reject(this.#failure)
    if (this.#pending.size === 0) return this.#writing?.waiting.promise ?? Promise.resolve()
    const { promise } = this.#waiting
    this.#running ??= this.#run()
    return promise
  }

  /** Usage that is not stored yet. */
  *unstored(): Generator<UsageRow> {
    if (this.#writing !== null) yield* this.#writing.rows.values()
    yield* this.#pending.values()
  }

  /** Runs a read of the store while nothing is written. @throws usage_not_recorded (503) if the store fails */
  readBetweenWrites<T>(read: () => Promise<T>): Promise<T> {
    if (this.#failure !== null) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#readings.push({ run: () => read().then(resolve, reject), reject })
      this.#running ??= this.#run()
    })
  }

  /** Stores what is pending; gives up at the first failure, and logs what is lost. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    if (this.#running !== null) await settlesWithin(this.#running, STOP_MS)
    const lost = [...this.unstored()]
    if (lost.length === 0) return
    const total = noUsage()
    for (const row of lost) addUsage(total, row)
    const { requests, input, output, costNano } = total
    this.#log.error(
      { requests, input_tokens: input, output_tokens: output, cost: costNano / NANO },
      'usage lost: the store did not take it before the end',
    )
  }

  #bounded(row: UsageRow): UsageRow {
    return { ...row, tenant: storableTenant(row.tenant), model: this.#models.admit(row.model) }
  }

  #merge(row: UsageRow): void {
    const name = nameOf(row)
    const before = this.#pending.get(name)
    if (before === undefined) this.#pending.set(name, row)
    else addUsage(before, row)
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    // Collects the batches of this turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#pending.size > 0 || this.#readings.length > 0) {
      await Promise.all(this.#readings.splice(0).map(({ run }) => run()))
      if (this.#pending.size === 0) continue
      const group: Group = { rows: this.#pending, waiting: this.#waiting, number: ++this.#number }
      this.#pending = new Map()
      this.#waiting = Promise.withResolvers()
      // Waiting batches handle the rejection; without any, it is logged here.
      group.waiting.promise.catch(() => undefined)
      this.#writing = group
      if (!(await this.#storeGroup(group))) break
    }
    this.#running = null
  }

  /** Repeats the write until it succeeds. @returns false if the ledger was stopped before */
  async #storeGroup(group: Group): Promise<boolean> {
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        await this.#commit(group, isRepeated)
        this.#writing = null
        this.#failure = null
        this.#failures.succeeded()
        this.#options.onStored(group.rows.values())
        group.waiting.resolve()
        return true
      } catch (err) {
        this.#failures.failed(err)
        this.#fail(usageErrors.usage_not_recorded.with({ cause: err }), group)
        const { signal } = this.#stopping
        if (signal.aborted) return false
        await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  /** Rejects every caller that waits; the rows stay. */
  #fail(error: GatewayError, group: Group): void {
    this.#failure = error
    group.waiting.reject(error)
    const next = this.#waiting
    this.#waiting = Promise.withResolvers()
    next.promise.catch(() => undefined)
    next.reject(error)
    for (const { reject } of this.#readings.splice(0)) reject(error)
  }

  /** @param isRepeated the outcome of an earlier attempt is unknown */
  async #commit({ rows, number }: Group, isRepeated: boolean): Promise<void> {
    if (isRepeated) {
      for (const name of rows.keys()) this.#known.delete(name)
      if ((await this.#writers.get(GATEWAY_TENANT, this.#writer)) === number) return
    }
    for (;;) {
      const entries = await this.#read(rows)
      const next = entries.map(({ row, stored }) => ({ row, value: sumOf(row, stored ?? null), stored }))
      const changes: Change[] = next.map(({ row, value, stored }) => ({
        kind: 'put',
        collection: RECORDS,
        tenant: row.tenant,
        id: rowId(row),
        value,
        expiresAtMs: Date.parse(row.day) + this.#options.keepDays * DAY_MS,
        onlyIf: stored === undefined ? undefined : (stored?.version ?? null),
      }))
      changes.push({
        kind: 'put',
        collection: WRITERS,
        tenant: GATEWAY_TENANT,
        id: this.#writer,
        value: number,
        expiresAtMs: Date.now() + WRITER_MS,
      })
      const durability = this.#options.isSynced ? 'synced' : 'relaxed'
      const version = await this.#store.write(changes, { durability })
      if (version !== null) {
        for (const { row, value } of next)
          this.#know(row, { id: rowId(row), value, version, expiresAtMs: null })
        return
      }
      // Another gateway has changed a record.
      for (const name of rows.keys()) this.#known.delete(name)
    }
  }

  async #read(rows: ReadonlyMap<string, UsageRow>): Promise<Entry[]> {
    return Promise.all(
      [...rows].map(async ([name, row]) => {
        const known = this.#known.get(name)
        return { row, stored: known === undefined ? await this.#readOne(row) : known }
      }),
    )
  }

  async #readOne(row: UsageRow): Promise<Entry['stored']> {
    try {
      return (await this.#records.read(row.tenant, rowId(row))) ?? null
    } catch (err) {
      if (!isUnreadableRecord(err)) throw err
      this.#log.error({ err, tenant: row.tenant, day: row.day }, 'unreadable usage record was replaced')
      return undefined
    }
  }

  #know(row: UsageRow, record: StoredRecord<StoredUsageRow>): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(nameOf(row), record)
  }
}

function nameOf(row: UsageRow): string {
  return `${row.tenant}\n${rowId(row)}`
}

function sumOf({ tenant: _, ...row }: UsageRow, stored: StoredRecord<StoredUsageRow> | null): StoredUsageRow {
  const value = { ...row, kinds: row.kinds && { ...row.kinds } }
  if (stored !== null) addUsage(value, stored.value)
  return value
}

/** A tenant whose name no store takes is recorded as `other`. */
function storableTenant(tenant: string): string {
  try {
    return checkKeyPart('tenant', tenant)
  } catch {
    return OTHER
  }
}
