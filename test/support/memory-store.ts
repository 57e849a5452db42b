/** The Store contract in memory: for tests that are not about storage, and the simplest implementation of the contract. */
import type { Change, Collection, RangeOptions, RecordPage, StoredRecord, StoreService } from '#kernel'
import { checkCollectionName, StoredCollection, storeErrors, toRecordJson } from '#shared'
import { recordKey } from '../../plugins/state/storage/record-format.ts'

interface Row {
  readonly collection: string
  readonly tenant: string
  readonly id: string
  readonly json: string
  readonly version: string
  readonly expiresAtMs: number | null
}

export class MemoryStore implements StoreService {
  readonly #rows = new Map<string, Row>()
  #writes = 0
  /** If set, every call fails with it. */
  failure: Error | null = null
  /** If set, every write waits for it. */
  held: Promise<void> | null = null

  collection<T>(name: string): Collection<T> {
    checkCollectionName(name)
    return new MemoryCollection<T>(name, this)
  }

  async write(changes: readonly Change[]): Promise<string | null> {
    if (this.failure !== null) throw this.failure
    await this.held
    const version = String(++this.#writes)
    const steps = changes.map((change) => {
      checkCollectionName(change.collection)
      const key = recordKey(change.collection, change.tenant, change.id)
      const json = change.kind === 'put' ? toRecordJson(change.value, Number.POSITIVE_INFINITY) : ''
      return { key, change, json }
    })
    const holds = steps.every(
      ({ key, change }) => change.onlyIf === undefined || (this.find(key)?.version ?? null) === change.onlyIf,
    )
    if (!holds) return null
    for (const { key, change, json } of steps) {
      const { collection, tenant, id } = change
      if (change.kind === 'delete') this.#rows.delete(key)
      if (change.kind !== 'put') continue
      this.#rows.set(key, { collection, tenant, id, json, version, expiresAtMs: change.expiresAtMs ?? null })
    }
    return version
  }

  /** @returns the row of that key unless it has expired */
  find(key: string): Row | undefined {
    if (this.failure !== null) throw this.failure
    const row = this.#rows.get(key)
    return row === undefined || isOver(row) ? undefined : row
  }

  /** All rows of a collection that have not expired, in order of tenant and id. */
  rows(collection: string): Row[] {
    if (this.failure !== null) throw this.failure
    return [...this.#rows.values()]
      .filter((row) => row.collection === collection && !isOver(row))
      .sort((a, b) => byBytes(a.tenant, b.tenant) || byBytes(a.id, b.id))
  }

  /** @returns the number of removed records */
  async sweep(limit: number): Promise<number> {
    const over = [...this.#rows].filter(([, row]) => isOver(row)).slice(0, limit)
    for (const [key] of over) this.#rows.delete(key)
    return over.length
  }
}

class MemoryCollection<T> extends StoredCollection<T> {
  readonly #store: MemoryStore

  constructor(name: string, store: MemoryStore) {
    super(
      name,
      () => true,
      (changes) => store.write(changes),
    )
    this.#store = store
  }

  async read(tenant: string, id: string): Promise<StoredRecord<T> | undefined> {
    const row = this.#store.find(recordKey(this.name, tenant, id))
    return row && toRecord<T>(row)
  }

  getMany(tenant: string, ids: readonly string[]): Promise<(T | undefined)[]> {
    return Promise.all(ids.map((id) => this.get(tenant, id)))
  }

  async range(tenant: string, options: RangeOptions = {}): Promise<RecordPage<T>> {
    const { from, to, after, reverse = false, limit = 100, maxBytes = 4 * 1024 * 1024 } = options
    for (const id of [from, to, after]) recordKey(this.name, tenant, id ?? '')
    const inside = this.#rowsOf(tenant).filter(
      ({ id }) => (from === undefined || byBytes(id, from) >= 0) && (to === undefined || byBytes(id, to) < 0),
    )
    const ordered = reverse ? inside.reverse() : inside
    const beyond = ordered.filter(
      ({ id }) => after === undefined || (reverse ? byBytes(id, after) < 0 : byBytes(id, after) > 0),
    )
    let bytes = 0
    const page = beyond.slice(0, Math.min(1_000, Math.max(1, limit))).filter((row, index) => {
      const isIn = index === 0 || bytes < maxBytes
      bytes += row.json.length
      return isIn
    })
    const next = page.length < beyond.length ? (page.at(-1)?.id ?? null) : null
    return { records: page.map((row) => toRecord<T>(row)), next }
  }

  async tenants(options: { readonly after?: string; readonly limit?: number } = {}): Promise<string[]> {
    const { after, limit = 100 } = options
    const all = [...new Set(this.#store.rows(this.name).map(({ tenant }) => tenant))]
    return all.filter((tenant) => after === undefined || byBytes(tenant, after) > 0).slice(0, limit)
  }

  #rowsOf(tenant: string): Row[] {
    recordKey(this.name, tenant, '')
    return this.#store.rows(this.name).filter((row) => row.tenant === tenant)
  }
}

/** The error of a store that is temporarily unavailable. */
export function storeGone(): Error {
  return storeErrors.storage_unavailable('it is gone')
}

function toRecord<T>({ id, json, version, expiresAtMs }: Row): StoredRecord<T> {
  return { id, value: JSON.parse(json) as T, version, expiresAtMs }
}

function isOver({ expiresAtMs }: Row): boolean {
  return expiresAtMs !== null && expiresAtMs <= Date.now()
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
