/**
 * History as JSON lines, to move it from one store to another: a head, one line a record, and an end that says how many
 * there were, so that a file that was cut is told from a whole one.
 */
import type { Change, Collection, StoreService } from '#kernel'
import { type Collections, openCollections } from './collections.ts'
import { historyErrors } from './errors.ts'

const HEAD = { weir: 'history', version: 1 } as const
const BATCH_RECORDS = 500
const BATCH_BYTES = 4 * 1024 * 1024
const PAGE = 500

/** What only means something to the gateways that run now. */
const MOMENTARY: ReadonlySet<keyof Collections> = new Set(['locks', 'jobOwners'])

interface Line {
  readonly collection: string
  readonly tenant: string
  readonly id: string
  readonly value: unknown
  readonly expiresAtMs?: number
}

/** Collections that move. */
function portableCollections(store: StoreService): Collection<unknown>[] {
  return Object.entries(openCollections(store)).flatMap(([name, collection]) =>
    MOMENTARY.has(name as keyof Collections) ? [] : [collection as Collection<unknown>],
  )
}

/**
 * Every line, each with its line feed. Records that change meanwhile may be in it as before or after.
 * @param onProgress told how many records there were so far, every now and then
 */
export async function* exportHistory(
  store: StoreService,
  onProgress: (records: number) => void = () => undefined,
): AsyncGenerator<string> {
  let records = 0
  yield toLine(HEAD)
  for (const collection of portableCollections(store)) {
    for await (const tenant of tenantsOf(collection)) {
      let after: string | undefined
      do {
        const page = await collection.range(tenant, { limit: PAGE, after })
        for (const { id, value, expiresAtMs } of page.records) {
          const expiry = expiresAtMs === null ? {} : { expiresAtMs }
          yield toLine({ collection: collection.name, tenant, id, value, ...expiry })
        }
        records += page.records.length
        onProgress(records)
        after = page.next ?? undefined
      } while (after !== undefined)
    }
  }
  yield toLine({ end: true, records })
}

/**
 * Puts every record of the lines, over what has the same id.
 * @returns how many
 * @throws invalid_history_file for what no export has written; what came before it is kept then
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
    else if (isEnded) throw historyErrors.invalid_history_file(number, 'it goes on after its end')
    else if (line.end === true) {
      isEnded = true
      const found = records + batch.length
      if (line.records !== found) {
        throw historyErrors.invalid_history_file(
          number,
          `it says ${String(line.records)} records and has ${found}`,
        )
      }
    } else {
      batch.push(toChange(line, known, number))
      bytes += text.length
      if (batch.length >= BATCH_RECORDS || bytes >= BATCH_BYTES) await flush()
    }
  }
  await flush()
  if (!isEnded) throw historyErrors.invalid_history_file(number, 'it ends in the middle')
  return records
}

/** Every tenant of a collection, page by page. */
export async function* tenantsOf(collection: Pick<Collection<unknown>, 'tenants'>): AsyncGenerator<string> {
  let after: string | undefined
  do {
    const tenants = await collection.tenants({ after })
    yield* tenants
    after = tenants.at(-1)
  } while (after !== undefined)
}

function toLine(value: object): string {
  return `${JSON.stringify(value)}\n`
}

function parseLine(text: string, number: number): Record<string, unknown> {
  try {
    const line: unknown = JSON.parse(text)
    if (typeof line === 'object' && line !== null && !Array.isArray(line))
      return line as Record<string, unknown>
  } catch {
    // Said below.
  }
  throw historyErrors.invalid_history_file(number, 'it is no JSON object')
}

function checkHead(line: Record<string, unknown>): void {
  if (line.weir === HEAD.weir && line.version === HEAD.version) return
  throw historyErrors.invalid_history_file(1, 'it is not the head of exported history, version 1')
}

function toChange(line: Record<string, unknown>, known: ReadonlySet<string>, number: number): Change {
  const { collection, tenant, id, value, expiresAtMs } = line as unknown as Line
  const isRecord =
    typeof collection === 'string' &&
    known.has(collection) &&
    typeof tenant === 'string' &&
    typeof id === 'string' &&
    value !== undefined &&
    (expiresAtMs === undefined || typeof expiresAtMs === 'number')
  if (!isRecord) throw historyErrors.invalid_history_file(number, 'it is no record of history')
  return { kind: 'put', collection, tenant, id, value, expiresAtMs }
}
