/** Removes records whose time is over, by the index of expiry: a bounded slice at a time, under the records' versions. */
import type { Condition, GroupCommit, LevelChange } from './group-commit.ts'
import type { Database } from './level-handle.ts'
import { expiredRange, expiredRecordKey } from './record-key.ts'
import { isExpired, readHead } from './record-value.ts'

/** @returns how many index entries were dealt with; fewer than `limit` when none is left */
export async function sweepExpired(db: Database, commits: GroupCommit, limit: number): Promise<number> {
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
      const changes: LevelChange[] = [{ key: entry, value: null }]
      const conditions: Condition[] = []
      if (head !== null && isExpired(head, nowMs)) {
        changes.push({ key: keys[index], value: null })
        // A record that was put anew meanwhile has another entry in the index and stays.
        conditions.push({ key: keys[index], version: null })
      }
      return commits.write({ changes, conditions, isSynced: false, bytes: 0 })
    }),
  )
  return entries.length
}
