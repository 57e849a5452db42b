/** A collection in PostgreSQL. Reads are here; writes go through the store. */
import type { RangeOptions, RecordPage, StoredRecord } from '#kernel'
import {
  checkKeyPart,
  DEFAULT_TENANTS,
  pageLimits,
  parseRecord,
  StoredCollection,
  type WriteChanges,
} from '#shared'

interface Row {
  readonly id: string
  readonly value: string
  readonly version: string
  /** A bigint, which the driver returns as text. */
  readonly expires_at_ms: string | null
}

type ReadRows = <R extends object>(sql: string, values: unknown[]) => Promise<R[]>

export class PgCollection<T> extends StoredCollection<T> {
  readonly #table: string
  readonly #read: ReadRows

  /** @param read runs a read with metrics and error mapping */
  constructor(
    name: string,
    isValid: (value: unknown) => boolean,
    write: WriteChanges,
    table: string,
    read: ReadRows,
  ) {
    super(name, isValid, write)
    this.#table = table
    this.#read = read
  }

  async read(tenant: string, id: string): Promise<StoredRecord<T> | undefined> {
    const [row] = await this.#rows('id = $4', [checkKeyPart('tenant', tenant), checkKeyPart('id', id)])
    return row && this.#toRecord(row)
  }

  async getMany(tenant: string, ids: readonly string[]): Promise<(T | undefined)[]> {
    checkKeyPart('tenant', tenant)
    for (const id of ids) checkKeyPart('id', id)
    if (ids.length === 0) return []
    const rows = await this.#rows('id = ANY ($4)', [tenant, ids])
    const byId = new Map(rows.map((row) => [row.id, row.value]))
    return ids.map((id) => {
      const json = byId.get(id)
      return json === undefined ? undefined : parseRecord<T>(this, id, json)
    })
  }

  async range(tenant: string, options: RangeOptions = {}): Promise<RecordPage<T>> {
    const { from, to, after, reverse = false } = options
    const { limit, maxBytes } = pageLimits(options)
    const values: unknown[] = [checkKeyPart('tenant', tenant)]
    const bound = (operator: string, id: string | undefined) => {
      if (id === undefined) return ''
      values.push(checkKeyPart('id', id))
      return ` AND id ${operator} $${values.length + 2}`
    }
    const where = `true${bound('>=', from)}${bound('<', to)}${bound(reverse ? '<' : '>', after)}`
    // Reads one more row to detect whether there are more; the server limits the sum of bytes.
    const order = `ORDER BY id ${reverse ? 'DESC' : 'ASC'}`
    const rows = await this.#cutRows(where, order, limit + 1, maxBytes, values)
    const isLimited = rows.length > limit
    if (isLimited) rows.pop()
    const last = rows.at(-1)
    // In bytes, as the server counts.
    const bytes = rows.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0)
    const hasMore = last !== undefined && (isLimited || bytes >= maxBytes)
    return { records: rows.map((row) => this.#toRecord(row)), next: hasMore ? last.id : null }
  }

  async tenants(options: { readonly after?: string; readonly limit?: number } = {}): Promise<string[]> {
    const { after, limit = DEFAULT_TENANTS } = options
    const beyond = after === undefined ? '' : checkKeyPart('tenant', after)
    const operator = after === undefined ? '>=' : '>'
    // Skips from tenant to tenant in the index instead of reading every record.
    const sql = `
      WITH RECURSIVE found AS (
        (SELECT tenant, 1 AS place FROM ${this.#table} WHERE collection = $1 AND tenant ${operator} $2
          ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT r.tenant FROM ${this.#table} r WHERE r.collection = $1 AND r.tenant > found.tenant
          ORDER BY r.tenant LIMIT 1), found.place + 1
        FROM found WHERE found.tenant IS NOT NULL AND found.place < $3
      )
      SELECT tenant FROM found WHERE tenant IS NOT NULL ORDER BY place`
    const rows = await this.#read<{ tenant: string }>(sql, [this.name, beyond, limit])
    return rows.map(({ tenant }) => tenant)
  }

  #toRecord({ id, value, version, expires_at_ms }: Row): StoredRecord<T> {
    const expiresAtMs = expires_at_ms === null ? null : Number(expires_at_ms)
    return { id, value: parseRecord<T>(this, id, value), version, expiresAtMs }
  }

  /** @param where further conditions; their parameters start at $4 after collection, time and tenant */
  #rows(where: string, values: unknown[]): Promise<Row[]> {
    const sql = `SELECT id, value, version, expires_at_ms FROM ${this.#table}
      WHERE collection = $1 AND (expires_at_ms IS NULL OR expires_at_ms > $2) AND tenant = $3 AND ${where}`
    return this.#read<Row>(sql, [this.name, Date.now(), ...values])
  }

  async #cutRows(
    where: string,
    order: string,
    limit: number,
    maxBytes: number,
    values: unknown[],
  ): Promise<Row[]> {
    const all = [this.name, Date.now(), ...values, limit, maxBytes]
    const sql = `
      SELECT id, value, version, expires_at_ms FROM (
        SELECT *, sum(octet_length(value)) OVER (${order} ROWS UNBOUNDED PRECEDING) - octet_length(value) AS before
        FROM (
          SELECT id, value, version, expires_at_ms FROM ${this.#table}
          WHERE collection = $1 AND (expires_at_ms IS NULL OR expires_at_ms > $2) AND tenant = $3 AND ${where}
          ${order} LIMIT $${all.length - 1}
        ) AS page
      ) AS counted WHERE before < $${all.length} ${order}`
    return this.#read<Row>(sql, all)
  }
}
