/** A collection in LevelDB. Reads are here; writes go through the store. */
import type { RangeOptions, RecordPage, StoredRecord } from '#kernel'
import { DEFAULT_TENANTS, pageLimits, parseRecord, StoredCollection, type WriteChanges } from '#shared'
import type { Database } from './level-handle.ts'
import { collectionRange, isExpired, readHead, recordKey, splitKey, tenantRange } from './record-format.ts'

type ReadDatabase = <R>(act: (db: Database) => Promise<R>) => Promise<R>

export class LevelCollection<T> extends StoredCollection<T> {
  readonly #read: ReadDatabase

  /** @param read runs a read with metrics and error mapping */
  constructor(name: string, isValid: (value: unknown) => boolean, write: WriteChanges, read: ReadDatabase) {
    super(name, isValid, write)
    this.#read = read
  }

  async read(tenant: string, id: string): Promise<StoredRecord<T> | undefined> {
    const key = recordKey(this.name, tenant, id)
    const text = await this.#read((db) => db.get(key))
    return text === undefined ? undefined : (this.#toRecord(id, text, Date.now()) ?? undefined)
  }

  async getMany(tenant: string, ids: readonly string[]): Promise<(T | undefined)[]> {
    const keys = ids.map((id) => recordKey(this.name, tenant, id))
    const texts = await this.#read((db) => db.getMany(keys))
    const nowMs = Date.now()
    return texts.map((text, index) =>
      text === undefined ? undefined : this.#toRecord(ids[index], text, nowMs)?.value,
    )
  }

  async range(tenant: string, options: RangeOptions = {}): Promise<RecordPage<T>> {
    const { limit, maxBytes } = pageLimits(options)
    const bounds = this.#bounds(tenant, options)
    return this.#read(async (db) => {
      // Reads one more row to detect whether there are more.
      const iterator = db.iterator({ ...bounds, limit: limit + 1, highWaterMarkBytes: maxBytes } as object)
      try {
        const rows = await takeRows(iterator, limit + 1, maxBytes)
        const isLimited = rows.length > limit
        if (isLimited) rows.pop()
        const nowMs = Date.now()
        const records: StoredRecord<T>[] = []
        let bytes = 0
        for (const [key, text] of rows) {
          bytes += text.length
          const record = this.#toRecord(splitKey(key).id, text, nowMs)
          if (record !== null) records.push(record)
        }
        const last = rows.at(-1)
        const hasMore = last !== undefined && (isLimited || bytes >= maxBytes)
        return { records, next: hasMore ? splitKey(last[0]).id : null }
      } finally {
        await iterator.close()
      }
    })
  }

  async tenants(options: { readonly after?: string; readonly limit?: number } = {}): Promise<string[]> {
    const limit = options.limit ?? DEFAULT_TENANTS
    const { from, to } = collectionRange(this.name)
    let start = options.after === undefined ? from : tenantRange(this.name, options.after).to
    return this.#read(async (db) => {
      const found: string[] = []
      while (found.length < limit) {
        const [key] = await db.keys({ gte: start, lt: to, limit: 1 }).all()
        if (key === undefined) break
        const { tenant } = splitKey(key)
        found.push(tenant)
        start = tenantRange(this.name, tenant).to
      }
      return found
    })
  }

  /** @returns null for an expired record */
  #toRecord(id: string, text: string, nowMs: number): StoredRecord<T> | null {
    const head = readHead(text)
    if (isExpired(head, nowMs)) return null
    const { version, expiresAtMs, jsonStart } = head
    return { id, value: parseRecord<T>(this, id, text.slice(jsonStart)), version, expiresAtMs }
  }

  #bounds(tenant: string, { from, to, after, reverse = false }: RangeOptions): Record<string, unknown> {
    const all = tenantRange(this.name, tenant)
    const key = (id: string) => recordKey(this.name, tenant, id)
    const low = from === undefined ? all.from : key(from)
    const high = to === undefined ? all.to : key(to)
    if (after === undefined) return { gte: low, lt: high, reverse }
    const cursor = key(after)
    // Ids contain no NUL, so the cursor followed by NUL is the next possible key.
    if (reverse) return { gte: low, lt: smallerOf(high, cursor), reverse }
    return { gte: largerOf(low, `${cursor}\u0000`), lt: high, reverse }
  }
}

/** Compares in byte order, as the database does. */
function smallerOf(a: string, b: string): string {
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) <= 0 ? a : b
}

function largerOf(a: string, b: string): string {
  return smallerOf(a, b) === a ? b : a
}

interface RowIterator {
  nextv(size: number): Promise<[string, string][]>
}

/** Reads rows up to either limit; may exceed the bytes by one read. */
async function takeRows(iterator: RowIterator, limit: number, maxBytes: number): Promise<[string, string][]> {
  const rows: [string, string][] = []
  let bytes = 0
  while (rows.length < limit && bytes < maxBytes) {
    const more = await iterator.nextv(limit - rows.length)
    if (more.length === 0) break
    for (const row of more) {
      rows.push(row)
      bytes += row[1].length
    }
  }
  return rows
}
