/**
 * Batches the writes of one thread: unconditional writes that arrive while a statement runs share the next statement and
 * its commit. A conditional write is a separate statement.
 */
import type { Change, Durability } from '#kernel'
import { storageOverloaded, toRecordJson } from '#shared'
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
interface PreparedWrite {
  readonly outcomes: readonly Outcome[]
  readonly conditions: readonly (Key & { readonly version: string | null })[]
  readonly isSynced: boolean
  readonly bytes: number
}

interface WaitingWrite {
  readonly write: PreparedWrite
  resolve(): void
  reject(error: unknown): void
}

const GROUP_BYTES = 8 * 1024 * 1024
const GROUP_WRITES = 1_000

export class WriteBatcher {
  readonly #connections: Connections
  readonly #sql: string
  readonly #maxWaitingBytes: number
  readonly #maxWaiting: number
  #waiting: WaitingWrite[] = []
  #waitingBytes = 0
  #running: Promise<void> | null = null

  constructor(
    connections: Connections,
    { schema, maxWaitingBytes, maxWaiting }: { schema: string; maxWaitingBytes: number; maxWaiting: number },
  ) {
    this.#connections = connections
    this.#sql = `SELECT ${schema}.apply_write($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16)`
    this.#maxWaitingBytes = maxWaitingBytes
    this.#maxWaiting = maxWaiting
  }

  /** @returns false if a condition failed */
  async write(write: PreparedWrite): Promise<boolean> {
    const isFull =
      this.#waiting.length >= this.#maxWaiting ||
      (this.#waitingBytes > 0 && this.#waitingBytes + write.bytes > this.#maxWaitingBytes)
    if (isFull) throw storageOverloaded()
    if (write.conditions.length === 0) {
      await this.#enqueue(write)
      return true
    }
    this.#waitingBytes += write.bytes
    try {
      await this.#send(write, false)
      return true
    } catch (error) {
      if (codeOf(error) === CONDITION_FAILED) return false
      throw error
    } finally {
      this.#waitingBytes -= write.bytes
    }
  }

  /** Resolves when no write is pending. */
  async idle(): Promise<void> {
    await this.#running
  }

  #enqueue(write: PreparedWrite): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject })
      this.#waitingBytes += write.bytes
      // Collects writes of other requests in this turn of the event loop.
      this.#running ??= new Promise((started) => setImmediate(started)).then(() => this.#run())
    })
  }

  /** Never rejects: errors reject the writes of the batch. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#nextGroup()
      const bytes = group.reduce((sum, { write }) => sum + write.bytes, 0)
      try {
        await this.#send(joinWrites(group.map(({ write }) => write)), true)
        for (const { resolve } of group) resolve()
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
      this.#waitingBytes -= bytes
    }
    this.#running = null
  }

  #nextGroup(): WaitingWrite[] {
    let bytes = 0
    let count = 0
    while (count < this.#waiting.length && count < GROUP_WRITES && (count === 0 || bytes < GROUP_BYTES)) {
      bytes += this.#waiting[count].write.bytes
      count++
    }
    return this.#waiting.splice(0, count)
  }

  async #send({ outcomes, conditions, isSynced }: PreparedWrite, isRepeatable: boolean): Promise<void> {
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
    await this.#connections.query(this.#sql, values, isRepeatable)
  }
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
