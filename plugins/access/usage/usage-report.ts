/** Reads usage from the ledger, filtered and grouped. */
import { type Collection, type Static, Type } from '#kernel'
import { pagesOf, tenantsOf } from '#shared'
import { usageErrors } from './errors.ts'
import { addUsage, idsOfDays, NANO, noUsage, type StoredUsageRow, type UsageAmount } from './usage-record.ts'

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

const count = (description: string) => Type.Integer({ description })
const name = (description: string) => Type.Optional(Type.Union([Type.String(), Type.Null()], { description }))

const amounts = {
  requests: count('Answered requests, and cancelled ones whose worker had reported tokens.'),
  input_tokens: count('Input tokens, cached ones included.'),
  cached_tokens: count('Input tokens that were read from a cache.'),
  output_tokens: count('Output tokens, reasoning included.'),
  reasoning_tokens: count('Output tokens of reasoning.'),
  kinds: Type.Optional(
    Type.Record(Type.String(), Type.Integer(), {
      description:
        'Tokens of certain kinds, which are part of the counts above: `cache_write` and, of it, `cache_write_<time to live>`; `input_<modality>`, `output_<modality>`; `tier_<service tier>`.',
    }),
  ),
  cost: Type.Number({ description: 'Cost by the prices that were configured at the time.' }),
}

const UsageOfGroup = Type.Object({
  day: name('With `group_by=day`.'),
  tenant: name('With `group_by=tenant`.'),
  key: name('With `group_by=key`; null for keys without an id.'),
  model: name('With `group_by=model`.'),
  ...amounts,
})

export const UsageReport = Type.Object({
  object: Type.Literal('usage'),
  from: Type.String({ description: 'First day, in UTC.' }),
  to: Type.String({ description: 'Last day, in UTC.' }),
  data: Type.Array(UsageOfGroup),
  total: Type.Object(amounts),
})
export type UsageReport = Static<typeof UsageReport>

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

function toShown({ requests, input, cached, output, reasoning, costNano, kinds }: UsageAmount) {
  return {
    requests,
    input_tokens: input,
    cached_tokens: cached,
    output_tokens: output,
    reasoning_tokens: reasoning,
    ...(kinds !== undefined && { kinds }),
    cost: costNano / NANO,
  }
}
