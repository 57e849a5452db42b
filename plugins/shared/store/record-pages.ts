/** The store for the records of a plugin, and reading its records and tenants page by page. */
import {
  type Collection,
  type Host,
  type RangeOptions,
  SharedStore,
  Store,
  type StoredRecord,
  type StoreService,
} from '#kernel'
import { storeErrors } from './store-operations.ts'

/**
 * The store that several gateways share if there is one, else that of this gateway.
 *
 * @throws record_store_missing
 */
export function findRecordStore(host: Pick<Host, 'find'>): {
  readonly store: StoreService
  readonly isShared: boolean
} {
  const shared = host.find(SharedStore)
  const store = shared ?? host.find(Store)
  if (store === undefined) throw storeErrors.record_store_missing()
  return { store, isShared: shared !== undefined }
}

const PAGE = 1_000

/** Yields the pages of a range. A page may be empty. */
export async function* pagesOf<T>(
  collection: Pick<Collection<T>, 'range'>,
  tenant: string,
  bounds: RangeOptions = {},
): AsyncGenerator<readonly StoredRecord<T>[]> {
  let after: string | undefined
  do {
    const page = await collection.range(tenant, { limit: PAGE, ...bounds, after })
    yield page.records
    after = page.next ?? undefined
  } while (after !== undefined)
}

/** Yields every tenant of a collection. */
export async function* tenantsOf(collection: Pick<Collection<unknown>, 'tenants'>): AsyncGenerator<string> {
  let after: string | undefined
  do {
    const tenants = await collection.tenants({ after })
    yield* tenants
    after = tenants.at(-1)
  } while (after !== undefined)
}

/** Counts the records of a tenant, up to `most`. */
export async function countRecords(
  collection: Collection<unknown>,
  tenant: string,
  most = Number.POSITIVE_INFINITY,
): Promise<number> {
  let count = 0
  for await (const records of pagesOf(collection, tenant, { limit: Math.min(PAGE, most) })) {
    count += records.length
    if (count >= most) return most
  }
  return count
}
