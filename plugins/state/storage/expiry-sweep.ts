/** Deletes expired records in batches, by the expiry index. */
import type { Condition, GroupCommit, LevelChange } from './group-commit.ts'
import type { Database } from './level-handle.ts'
import { expiredRange, expiredRecordKey } from './record-key.ts'
import { isExpired, readHead } from './record-value.ts'

/** @returns the number of index entries processed; fewer than `limit` if none is left */
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
        // The condition keeps a record that was written again meanwhile.
        conditions.push({ key: keys[index], version: null })
      }
      return commits.write({ changes, conditions, isSynced: false, bytes: 0 })
    }),
  )
  return entries.length
}
