/** The Store contract over LevelDB: JSON records in one directory, shared by all threads of the process. */
import type { Change, Collection, StoreService, WriteOptions } from '#kernel'
import {
  checkCollectionName,
  makeVersionStamps,
  runStoreOperation,
  type StoreMetrics,
  toRecordJson,
  WriteQueue,
} from '#shared'
import { type Condition, commitWrites, type LevelChange, type LevelWrite } from './group-commit.ts'
import { LevelCollection } from './level-collection.ts'
import { HANDLE_CELLS, LevelHandle } from './level-handle.ts'
import {
  encodeRecord,
  expiredRange,
  expiredRecordKey,
  expiryKey,
  isExpired,
  readHead,
  recordKey,
} from './record-format.ts'
import { LOCK_CELLS, WriteLock } from './write-lock.ts'

/** Bytes of the memory that the stores of all threads share. */
export const SHARED_BYTES = (LOCK_CELLS + HANDLE_CELLS) * 4

export interface LevelStoreOptions {
  readonly metrics?: StoreMetrics
  /** Memory of SHARED_BYTES that all threads share; omit it if only one thread writes. */
  readonly shared?: SharedArrayBuffer
  /** Maximum bytes of JSON of a record. Default 64 MiB. */
  readonly maxRecordBytes?: number
  /** Maximum bytes of pending writes on this thread. Default 64 MiB. */
  readonly maxWaitingBytes?: number
  readonly warn?: (message: string) => void
}

const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

export class LevelStore implements StoreService {
  readonly #metrics: StoreMetrics | null
  readonly #handle: LevelHandle
  readonly #writes: WriteQueue<LevelWrite, boolean>
  readonly #maxRecordBytes: number
  readonly #nextVersion = makeVersionStamps()

  constructor(dir: string, options: LevelStoreOptions = {}) {
    this.#metrics = options.metrics ?? null
    this.#maxRecordBytes = options.maxRecordBytes ?? DEFAULT_MAX_BYTES
    const cells = new Int32Array(options.shared ?? new SharedArrayBuffer(SHARED_BYTES))
    this.#handle = new LevelHandle(dir, cells.subarray(LOCK_CELLS), options.warn ?? (() => undefined))
    const lock = new WriteLock(cells.subarray(0, LOCK_CELLS))
    this.#writes = new WriteQueue(
      (writes) => commitWrites(this.#handle, lock, writes),
      options.maxWaitingBytes ?? DEFAULT_MAX_BYTES,
    )
  }

  /** @throws storage_locked if another process uses it, storage_unreadable for other errors */
  async open(): Promise<void> {
    await this.#handle.open()
  }

  /** Finishes pending writes first. */
  async close(): Promise<void> {
    await this.#writes.idle()
    await this.#handle.close()
  }

  /** Why writes fail; null while they work. Checked in the background. */
  problem(): string | null {
    return this.#handle.problem()
  }

  /** @throws invalid_collection_name */
  collection<T>(name: string, isValid: (value: unknown) => boolean = () => true): Collection<T> {
    checkCollectionName(name)
    return new LevelCollection<T>(
      name,
      isValid,
      (changes, options) => this.write(changes, options),
      (act) =>
        runStoreOperation(this.#metrics, 'read', name, async () => act(await this.#handle.forReading())),
    )
  }

  async write(changes: readonly Change[], options: WriteOptions = {}): Promise<string | null> {
    const version = this.#nextVersion()
    const steps: LevelChange[] = []
    const conditions: Condition[] = []
    let bytes = 0
    let verb: 'write' | 'delete' = 'delete'
    for (const change of changes) {
      if (change.kind !== 'delete') verb = 'write'
      checkCollectionName(change.collection)
      const key = recordKey(change.collection, change.tenant, change.id)
      if (change.onlyIf !== undefined) conditions.push({ key, version: change.onlyIf })
      if (change.kind !== 'check') addSteps(steps, key, change, version, this.#maxRecordBytes)
    }
    for (const step of steps) bytes += step.key.length + (step.type === 'put' ? step.value.length : 0)
    const write = { changes: steps, conditions, isSynced: options.durability === 'synced', bytes }
    const isDone = await runStoreOperation(this.#metrics, verb, changes[0]?.collection ?? '', () =>
      this.#writes.add(write),
    )
    return isDone ? version : null
  }

  /**
   * Deletes expired records.
   * @returns the number of index entries processed; fewer than `limit` if none is left
   */
  async sweep(limit: number): Promise<number> {
    const db = await this.#handle.forReading()
    const nowMs = Date.now()
    const { from, to } = expiredRange(nowMs)
    const entries = await db.keys({ gte: from, lt: to, limit }).all()
    if (entries.length === 0) return 0
    const keys = entries.map(expiredRecordKey)
    const texts = await db.getMany(keys)
    await Promise.all(
      entries.map((entry, index) => {
        const text = texts[index]
        const head = text === undefined ? null : readHead(text)
        const changes: LevelChange[] = [{ type: 'del', key: entry }]
        const conditions: Condition[] = []
        if (head !== null && isExpired(head, nowMs)) {
          changes.push({ type: 'del', key: keys[index] })
          // The condition keeps a record that was written again meanwhile.
          conditions.push({ key: keys[index], version: null })
        }
        return this.#writes.add({ changes, conditions, isSynced: false, bytes: 0 })
      }),
    )
    return entries.length
  }
}

function addSteps(
  steps: LevelChange[],
  key: string,
  change: Exclude<Change, { kind: 'check' }>,
  version: string,
  maxRecordBytes: number,
): void {
  if (change.kind === 'delete') {
    steps.push({ type: 'del', key })
    return
  }
  const json = toRecordJson(change.value, maxRecordBytes)
  const expiresAtMs = change.expiresAtMs ?? null
  steps.push({ type: 'put', key, value: encodeRecord(json, version, expiresAtMs) })
  if (expiresAtMs !== null) steps.push({ type: 'put', key: expiryKey(expiresAtMs, key), value: '' })
}
