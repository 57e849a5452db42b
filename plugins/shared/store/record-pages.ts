/** Reads records of a store, and the tenants that have some, page by page. */
import type { Collection, RangeOptions, StoredRecord } from '#kernel'

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
