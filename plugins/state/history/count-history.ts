/** How much history there is, tenant by tenant. */
import type { Collection, StoreService } from '#kernel'
import { openCollections } from './collections.ts'
import { tenantsOf } from './portable.ts'

export interface TenantCounts {
  readonly tenant: string
  readonly responses: number
  readonly conversations: number
  readonly items: number
  readonly waitingJobs: number
}

const PAGE = 1_000

/** In order of tenant. Reads small records only, but all of them. */
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

async function countRecords(collection: Collection<unknown>, tenant: string): Promise<number> {
  let count = 0
  let after: string | undefined
  do {
    const page = await collection.range(tenant, { limit: PAGE, after })
    count += page.records.length
    after = page.next ?? undefined
  } while (after !== undefined)
  return count
}
