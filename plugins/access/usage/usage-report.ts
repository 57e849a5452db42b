/** Reads usage from the ledger, filtered and grouped. */
import type { Collection } from '#kernel'
import { pagesOf, tenantsOf } from '#shared'
import { usageErrors } from './errors.ts'
import { NANO } from './price-list.ts'
import { addUsage, idsOfDays, noUsage, type StoredUsageRow, type UsageAmount } from './usage-record.ts'

const MAX_ROWS = 100_000

export const GROUPS = ['day', 'tenant', 'key', 'model'] as const
export type Group = (typeof GROUPS)[number]

export interface UsageQuery {
  readonly tenant: string | null
  readonly key: string | null
  readonly model: string | null
  /** Days in UTC, both included. */
  readonly from: string
  readonly to: string
  readonly groupBy: readonly Group[]
}

export interface ShownUsage extends Partial<Record<Group, string | null>> {
  readonly requests: number
  readonly input_tokens: number
  readonly cached_tokens: number
  readonly output_tokens: number
  readonly reasoning_tokens: number
  readonly cost: number
}

export interface UsageReport {
  readonly object: 'usage'
  readonly from: string
  readonly to: string
  readonly data: readonly ShownUsage[]
  readonly total: ShownUsage
}

/** @throws usage_report_too_large (400) */
export async function readUsage(
  records: Collection<StoredUsageRow>,
  query: UsageQuery,
): Promise<UsageReport> {
  const { from, to, groupBy } = query
  const groups = new Map<
    string,
    { readonly names: Partial<Record<Group, string | null>>; amount: UsageAmount }
  >()
  const total = noUsage()
  let rows = 0
  for await (const tenant of query.tenant === null ? tenantsOf(records) : [query.tenant]) {
    for await (const page of pagesOf(records, tenant, idsOfDays(from, to))) {
      rows += page.length
      if (rows > MAX_ROWS) throw usageErrors.usage_report_too_large(MAX_ROWS)
      for (const { value } of page) {
        if (query.key !== null && value.key !== query.key) continue
        if (query.model !== null && value.model !== query.model) continue
        const names = namesOf(groupBy, tenant, value)
        const name = JSON.stringify(names)
        const group = groups.get(name) ?? { names, amount: noUsage() }
        groups.set(name, group)
        addUsage(group.amount, value)
        addUsage(total, value)
      }
    }
  }
  const sorted = [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
  return {
    object: 'usage',
    from,
    to,
    data: sorted.map(({ names, amount }) => ({ ...names, ...toShown(amount) })),
    total: toShown(total),
  }
}

function namesOf(
  groupBy: readonly Group[],
  tenant: string,
  { day, key, model }: StoredUsageRow,
): Partial<Record<Group, string | null>> {
  const names = { day, tenant, key: key === '' ? null : key, model }
  return Object.fromEntries(
    GROUPS.filter((name) => groupBy.includes(name)).map((name) => [name, names[name]]),
  )
}

function toShown({ requests, input, cached, output, reasoning, costNano }: UsageAmount): ShownUsage {
  return {
    requests,
    input_tokens: input,
    cached_tokens: cached,
    output_tokens: output,
    reasoning_tokens: reasoning,
    cost: costNano / NANO,
  }
}
