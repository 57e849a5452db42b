/**
 * Group commit: writes that arrive while a batch is written to disk form the next batch, so that many writes share one
 * sync. Conditions are checked in order of arrival, including the effects of earlier writes in the batch.
 */
import { storageOverloaded } from '#shared'
import type { LevelHandle } from './level-handle.ts'
import { isExpired, readHead } from './record-value.ts'
import type { WriteLock } from './write-lock.ts'

export interface LevelChange {
  readonly key: string
  /** Null deletes the record. */
  readonly value: string | null
}

export interface Condition {
  readonly key: string
  /** Null requires that the record does not exist. */
  readonly version: string | null
}

export interface LevelWrite {
  readonly changes: readonly LevelChange[]
  readonly conditions: readonly Condition[]
  readonly isSynced: boolean
  /** Approximate memory while pending. */
  readonly bytes: number
}

interface WaitingWrite {
  readonly write: LevelWrite
  resolve(isDone: boolean): void
  reject(error: unknown): void
}

/** Maximum bytes of a batch. */
const GROUP_BYTES = 8 * 1024 * 1024

type BatchStep = { type: 'put'; key: string; value: string } | { type: 'del'; key: string }

export class GroupCommit {
  readonly #handle: LevelHandle
  readonly #lock: WriteLock
  readonly #maxWaitingBytes: number
  #waiting: WaitingWrite[] = []
  #waitingBytes = 0
  #isRunning = false
  #onIdle: (() => void)[] = []

  constructor(handle: LevelHandle, lock: WriteLock, maxWaitingBytes: number) {
    this.#handle = handle
    this.#lock = lock
    this.#maxWaitingBytes = maxWaitingBytes
  }

  /**
   * @returns false if a condition failed and nothing was written
   * @throws storage_overloaded, storage_not_open, or storage_unavailable also for the write that fails first
   */
  write(write: LevelWrite): Promise<boolean> {
    if (this.#waitingBytes > 0 && this.#waitingBytes + write.bytes > this.#maxWaitingBytes) {
      return Promise.reject(storageOverloaded())
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject })
      this.#waitingBytes += write.bytes
      if (this.#isRunning) return
      this.#isRunning = true
      // Collects writes of other requests in this turn of the event loop.
      setImmediate(() => void this.#run())
    })
  }

  /** Resolves when no write is pending. */
  async idle(): Promise<void> {
    if (this.#isRunning) await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  /** Never rejects: errors reject the writes of the batch. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#nextGroup()
      try {
        const results = await this.#commit(group.map(({ write }) => write))
        for (const [index, waiting] of group.entries()) waiting.resolve(results[index])
      } catch (error) {
        for (const waiting of group) waiting.reject(error)
      }
    }
    this.#isRunning = false
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  #nextGroup(): WaitingWrite[] {
    let bytes = 0
    let count = 0
    while (count < this.#waiting.length && (count === 0 || bytes < GROUP_BYTES)) {
      bytes += this.#waiting[count].write.bytes
      count++
    }
    this.#waitingBytes -= bytes
    return this.#waiting.splice(0, count)
  }

  async #commit(writes: readonly LevelWrite[]): Promise<boolean[]> {
    await this.#lock.acquire()
    try {
      const db = await this.#handle.forWriting()
      const versions = await this.#versionsOf(writes)
      const steps: BatchStep[] = []
      let isSynced = false
      const results = writes.map(({ changes, conditions, isSynced: isThisSynced }) => {
        if (!conditions.every(({ key, version }) => versions.get(key) === version)) return false
        for (const { key, value } of changes) {
          steps.push(value === null ? { type: 'del', key } : { type: 'put', key, value })
          if (versions.has(key)) versions.set(key, value === null ? null : readHead(value).version)
        }
        isSynced ||= isThisSynced
        return true
      })
      if (steps.length === 0) return results
      if (!this.#lock.isHeld) return await this.#commit(writes)
      try {
        await db.batch(steps, { sync: isSynced } as object)
      } catch (error) {
        throw this.#handle.onWriteFailed(error)
      }
      return results
    } finally {
      this.#lock.release()
    }
  }

  /** Current versions of the keys that have conditions. */
  async #versionsOf(writes: readonly LevelWrite[]): Promise<Map<string, string | null>> {
    const versions = new Map<string, string | null>()
    for (const { conditions } of writes) for (const { key } of conditions) versions.set(key, null)
    if (versions.size === 0) return versions
    const keys = [...versions.keys()]
    const db = await this.#handle.forReading()
    const texts = await db.getMany(keys)
    const nowMs = Date.now()
    for (const [index, text] of texts.entries()) {
      const head = text === undefined ? null : readHead(text)
      versions.set(keys[index], head === null || isExpired(head, nowMs) ? null : head.version)
    }
    return versions
  }
}
