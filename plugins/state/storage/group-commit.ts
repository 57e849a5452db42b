/**
 * Writes a batch to disk with one sync. Conditions are checked in order of arrival, including the effects of earlier writes
 * in the batch.
 */
import type { Database, LevelHandle } from './level-handle.ts'
import { isExpired, readHead } from './record-format.ts'
import type { WriteLock } from './write-lock.ts'

/** An operation of the database's batch. */
export type LevelChange =
  | { readonly type: 'put'; readonly key: string; readonly value: string }
  | { readonly type: 'del'; readonly key: string }

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

/**
 * @returns false for each write of which a condition failed and nothing was written
 * @throws storage_not_open, or storage_unavailable also for the write that fails first
 */
export async function commitWrites(
  handle: LevelHandle,
  lock: WriteLock,
  writes: readonly LevelWrite[],
): Promise<boolean[]> {
  await lock.acquire()
  try {
    const db = await handle.forWriting()
    const versions = await versionsOf(handle, writes)
    const steps: LevelChange[] = []
    let isSynced = false
    const results = writes.map(({ changes, conditions, isSynced: isThisSynced }) => {
      if (!conditions.every(({ key, version }) => versions.get(key) === version)) return false
      for (const change of changes) {
        steps.push(change)
        if (versions.has(change.key))
          versions.set(change.key, change.type === 'del' ? null : readHead(change.value).version)
      }
      isSynced ||= isThisSynced
      return true
    })
    if (steps.length === 0) return results
    if (!lock.isHeld) return await commitWrites(handle, lock, writes)
    try {
      await writeBatch(db, steps, isSynced)
    } catch (error) {
      throw handle.onWriteFailed(error)
    }
    return results
  } finally {
    lock.release()
  }
}

/** The batch copies each change at once; for an array of them, the library makes more objects, which live until the sync. */
function writeBatch(db: Database, steps: readonly LevelChange[], isSynced: boolean): Promise<void> {
  const batch = db.batch()
  for (const step of steps) {
    if (step.type === 'put') batch.put(step.key, step.value)
    else batch.del(step.key)
  }
  return batch.write({ sync: isSynced } as object)
}

/** Current versions of the keys that have conditions. */
async function versionsOf(
  handle: LevelHandle,
  writes: readonly LevelWrite[],
): Promise<Map<string, string | null>> {
  const versions = new Map<string, string | null>()
  for (const { conditions } of writes) for (const { key } of conditions) versions.set(key, null)
  if (versions.size === 0) return versions
  const keys = [...versions.keys()]
  const db = await handle.forReading()
  const texts = await db.getMany(keys)
  const nowMs = Date.now()
  for (const [index, text] of texts.entries()) {
    const head = text === undefined ? null : readHead(text)
    versions.set(keys[index], head === null || isExpired(head, nowMs) ? null : head.version)
  }
  return versions
}
