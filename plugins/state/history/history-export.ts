/**
 * Export and import of history as JSON lines: a header, one line per record, and a trailer with the number of records,
 * which detects a truncated file. Also counts the records of each tenant.
 */
import { type Change, type Collection, isObject, type StoreService } from '#kernel'
import { countRecords, pagesOf, tenantsOf } from '#shared'
import { type Collections, openCollections } from './collections.ts'
import { historyErrors } from './errors.ts'

const HEAD = { weir: 'history', version: 1 } as const
const BATCH_RECORDS = 500
const BATCH_BYTES = 4 * 1024 * 1024
const PAGE = 500

/** Collections that are meaningful only to running gateways. */
const NOT_EXPORTED: ReadonlySet<keyof Collections> = new Set(['locks', 'jobOwners'])

function portableCollections(store: StoreService): Collection<unknown>[] {
  return Object.entries(openCollections(store)).flatMap(([name, collection]) =>
    NOT_EXPORTED.has(name as keyof Collections) ? [] : [collection as Collection<unknown>],
  )
}

/**
 * Yields lines with line feed. Records that change during the export may be included in either state.
 * @param onProgress called with the number of records so far
 */
export async function* exportHistory(
  store: StoreService,
  onProgress: (records: number) => void = () => undefined,
): AsyncGenerator<string> {
  let records = 0
  yield toLine(HEAD)
  for (const collection of portableCollections(store)) {
    for await (const tenant of tenantsOf(collection)) {
      for await (const page of pagesOf(collection, tenant, { limit: PAGE })) {
        for (const { id, value, expiresAtMs } of page) {
          const expiry = expiresAtMs === null ? {} : { expiresAtMs }
          yield toLine({ collection: collection.name, tenant, id, value, ...expiry })
        }
        records += page.length
        onProgress(records)
      }
    }
  }
  yield toLine({ end: true, records })
}

/**
 * Stores every record, replacing records with the same id.
 * @returns the number of records
 * @throws invalid_history_file; earlier lines remain imported
 */
export async function importHistory(
  store: StoreService,
  lines: AsyncIterable<string>,
  onProgress: (records: number) => void = () => undefined,
): Promise<number> {
  const known = new Set(portableCollections(store).map(({ name }) => name))
  let batch: Change[] = []
  let bytes = 0
  let records = 0
  let number = 0
  let isEnded = false
  const flush = async () => {
    await store.write(batch, { durability: 'synced' })
    records += batch.length
    batch = []
    bytes = 0
    onProgress(records)
  }
  for await (const text of lines) {
    number++
    const line = parseLine(text, number)
    if (number === 1) checkHead(line)
    else if (isEnded) throw historyErrors.invalid_history_file(number, 'data after the trailer')
    else if (line.end === true) {
      isEnded = true
      const found = records + batch.length
      if (line.records !== found) {
        throw historyErrors.invalid_history_file(
          number,
          `the trailer announces ${String(line.records)} records, the file has ${found}`,
        )
      }
    } else {
      batch.push(toChange(line, known, number))
      bytes += text.length
      if (batch.length >= BATCH_RECORDS || bytes >= BATCH_BYTES) await flush()
    }
  }
  await flush()
  if (!isEnded)
    throw historyErrors.invalid_history_file(number, 'the trailer is missing; the file is truncated')
  return records
}

function toLine(value: object): string {
  return `${JSON.stringify(value)}\n`
}

function parseLine(text: string, number: number): Record<string, unknown> {
  try {
    const line: unknown = JSON.parse(text)
    if (isObject(line)) return line
  } catch {
    // Reported below.
  }
  throw historyErrors.invalid_history_file(number, 'it is not a JSON object')
}

function checkHead(line: Record<string, unknown>): void {
  if (line.weir === HEAD.weir && line.version === HEAD.version) return
  throw historyErrors.invalid_history_file(1, 'it is not the header of a history export, version 1')
}

function toChange(line: Record<string, unknown>, known: ReadonlySet<string>, number: number): Change {
  const { collection, tenant, id, value, expiresAtMs } = line
  const isRecord =
    typeof collection === 'string' &&
    known.has(collection) &&
    typeof tenant === 'string' &&
    typeof id === 'string' &&
    value !== undefined &&
    (expiresAtMs === undefined || typeof expiresAtMs === 'number')
  if (!isRecord) throw historyErrors.invalid_history_file(number, 'it is not a history record')
  return { kind: 'put', collection, tenant, id, value, expiresAtMs }
}

export interface TenantCounts {
  readonly tenant: string
  readonly responses: number
  readonly conversations: number
  readonly items: number
  readonly waitingJobs: number
}

/** Sorted by tenant. Reads all records of the index collections. */
export async function countHistory(store: StoreService): Promise<TenantCounts[]> {
  const { ages, conversations, items, waitingJobs } = openCollections(store)
  const tenants = new Set<string>()
  for (const collection of [ages, conversations, items, waitingJobs]) {
    for await (const tenant of tenantsOf(collection)) tenants.add(tenant)
  }
  const counts: TenantCounts[] = []
  for (const tenant of [...tenants].sort()) {
    counts.push({
      tenant,
      responses: await countRecords(ages, tenant),
      conversations: await countRecords(conversations, tenant),
      items: await countRecords(items, tenant),
      waitingJobs: await countRecords(waitingJobs, tenant),
    })
  }
  return counts
}
