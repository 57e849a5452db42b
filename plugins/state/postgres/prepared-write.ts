/** Writes as one statement each: unconditional ones are joined, a conditional one is a statement of its own. */
import type { Change, Durability } from '#kernel'
import { toRecordJson } from '#shared'
import { type Connections, codeOf } from './connections.ts'
import { CONDITION_FAILED } from './migrations.ts'

interface Key {
  readonly collection: string
  readonly tenant: string
  readonly id: string
}

/** State of a record after a write; null if deleted. */
interface Outcome extends Key {
  readonly json: string | null
  readonly version: string
  readonly expiresAtMs: number | null
}

/** A checked write, with its records in order. */
export interface PreparedWrite {
  readonly outcomes: readonly Outcome[]
  readonly conditions: readonly (Key & { readonly version: string | null })[]
  readonly isSynced: boolean
  readonly bytes: number
}

/** Those of `apply_write`. */
const PARAMETERS = '$1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16'

/**
 * Makes writes in one statement.
 * @param writes unconditional ones, or a single conditional one
 * @returns false for a write of which a condition failed
 */
export async function applyWrites(
  connections: Connections,
  schema: string,
  writes: readonly PreparedWrite[],
): Promise<boolean[]> {
  const { outcomes, conditions, isSynced } = joinWrites(writes)
  const absent = new Set(conditions.filter(({ version }) => version === null).map(nameOf))
  const puts = outcomes.filter(({ json }) => json !== null)
  const gone = outcomes.filter(({ json }) => json === null)
  const values = [
    Date.now(),
    !isSynced,
    ...keyColumns(conditions),
    conditions.map(({ version }) => version),
    ...keyColumns(puts),
    puts.map(({ json }) => json),
    puts.map(({ version }) => version),
    puts.map(({ expiresAtMs }) => expiresAtMs),
    puts.map((put) => absent.has(nameOf(put))),
    ...keyColumns(gone),
  ]
  try {
    const sql = `SELECT ${schema}.apply_write(${PARAMETERS})`
    await connections.query(sql, values, conditions.length === 0)
  } catch (error) {
    if (conditions.length > 0 && codeOf(error) === CONDITION_FAILED) return [false]
    throw error
  }
  return writes.map(() => true)
}

/** @throws TypeError for a value without JSON representation, record_too_large */
export function prepareWrite(
  changes: readonly Change[],
  version: string,
  durability: Durability,
  maxRecordBytes: number,
): PreparedWrite {
  const outcomes = new Map<string, Outcome>()
  const conditions = new Map<string, Key & { version: string | null }>()
  let bytes = 0
  for (const change of changes) {
    const { collection, tenant, id } = change
    const key = { collection, tenant, id }
    const name = nameOf(key)
    if (change.onlyIf !== undefined)
      conditions.set(`${name}\u0000${change.onlyIf}`, { ...key, version: change.onlyIf })
    if (change.kind === 'check') continue
    const json = change.kind === 'put' ? toRecordJson(change.value, maxRecordBytes) : null
    const expiresAtMs = change.kind === 'put' ? (change.expiresAtMs ?? null) : null
    outcomes.set(name, { ...key, json, version, expiresAtMs })
    bytes += name.length + (json?.length ?? 0)
  }
  return {
    outcomes: inOrder(outcomes),
    conditions: inOrder(conditions),
    isSynced: durability === 'synced',
    bytes,
  }
}

/** Merges writes into one; later ones win. */
function joinWrites(writes: readonly PreparedWrite[]): PreparedWrite {
  if (writes.length === 1) return writes[0]
  const outcomes = new Map<string, Outcome>()
  for (const write of writes) for (const outcome of write.outcomes) outcomes.set(nameOf(outcome), outcome)
  const isSynced = writes.some((write) => write.isSynced)
  return { outcomes: inOrder(outcomes), conditions: [], isSynced, bytes: 0 }
}

/** Every gateway locks rows in the same order, which prevents deadlocks. */
function inOrder<T>(byName: ReadonlyMap<string, T>): T[] {
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value)
}

function nameOf({ collection, tenant, id }: Key): string {
  return `${collection}\u0000${tenant}\u0000${id}`
}

function keyColumns(keys: readonly Key[]): [string[], string[], string[]] {
  return [
    keys.map(({ collection }) => collection),
    keys.map(({ tenant }) => tenant),
    keys.map(({ id }) => id),
  ]
}
