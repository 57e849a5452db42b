/** What tenants and keys with budgets have used in the current periods. Runs on control. */
import type { Collection } from '#kernel'
import type { BudgetState } from './budgets.ts'
import { budgetsOf } from './budgets.ts'
import type { Budget } from './config.ts'
import type { Ledger } from './ledger.ts'
import { NANO } from './price-list.ts'
import { dayOf, idsOfDays, type StoredUsageRow, type UsageRow } from './usage-record.ts'

/** With a store that several gateways share, totals are read again after this time. */
const SHARED_FRESH_MS = 5_000
const MAX_KNOWN = 10_000
const PAGE = 1_000

interface Total {
  readonly tenant: string
  /** Null for all keys of the tenant. */
  readonly key: string | null
  readonly firstDay: string
  tokens: number
  costNano: number
  readonly readAtMs: number
}

export class BudgetTotals {
  readonly #records: Collection<StoredUsageRow>
  readonly #isShared: boolean
  readonly #ledger: () => Ledger
  /** Stored usage by tenant, key and period. */
  readonly #totals = new Map<string, Total>()
  budgets: readonly Budget[]

  constructor(
    records: Collection<StoredUsageRow>,
    budgets: readonly Budget[],
    isShared: boolean,
    ledger: () => Ledger,
  ) {
    this.#records = records
    this.budgets = budgets
    this.#isShared = isShared
    this.#ledger = ledger
  }

  async read(tenant: string, key: string): Promise<BudgetState[]> {
    const states: BudgetState[] = []
    for (const budget of budgetsOf(this.budgets, tenant, key)) {
      const { period, tokens, cost } = budget
      const stored = await this.#total(tenant, budget.key ?? null, period)
      const total = { ...stored }
      for (const row of this.#ledger().unstored()) addTo(total, row)
      const { tokens: usedTokens, costNano: usedCostNano } = total
      const costNano = cost === null ? null : cost * NANO
      states.push({ period, tokens, costNano, usedTokens, usedCostNano, endsAtMs: endOf(period) })
    }
    return states
  }

  /** Usage that was stored. */
  onStored(rows: Iterable<UsageRow>): void {
    if (this.#totals.size === 0) return
    for (const row of rows)
      for (const budget of budgetsOf(this.budgets, row.tenant, row.key)) {
        const total = this.#totals.get(nameOf(row.tenant, budget.key ?? null, budget.period))
        if (total !== undefined) addTo(total, row)
      }
  }

  async #total(tenant: string, key: string | null, period: Budget['period']): Promise<Total> {
    const firstDay = firstDayOf(period)
    const name = nameOf(tenant, key, period)
    const known = this.#totals.get(name)
    const isFresh = !this.#isShared || (known !== undefined && Date.now() - known.readAtMs < SHARED_FRESH_MS)
    if (known !== undefined && known.firstDay === firstDay && isFresh) return known
    if (this.#totals.size >= MAX_KNOWN) this.#totals.clear()
    return this.#ledger().readBetweenWrites(async () => {
      const total = await this.#sum(tenant, key, firstDay)
      this.#totals.set(name, total)
      return total
    })
  }

  async #sum(tenant: string, key: string | null, firstDay: string): Promise<Total> {
    const total: Total = { tenant, key, firstDay, tokens: 0, costNano: 0, readAtMs: Date.now() }
    const { from, to } = idsOfDays(firstDay, '9')
    for (let after: string | undefined; ; ) {
      const { records, next } = await this.#records.range(tenant, { from, to, after, limit: PAGE })
      for (const { value } of records) {
        if (key !== null && value.key !== key) continue
        total.tokens += value.input + value.output
        total.costNano += value.costNano
      }
      if (next === null) return total
      after = next
    }
  }
}

function nameOf(tenant: string, key: string | null, period: Budget['period']): string {
  return `${tenant}\n${key ?? ''}\n${period}`
}

function addTo(total: Total, row: UsageRow): void {
  const isOfKey = total.key === null || total.key === row.key
  if (row.tenant !== total.tenant || !isOfKey || row.day < total.firstDay) return
  total.tokens += row.input + row.output
  total.costNano += row.costNano
}

function firstDayOf(period: Budget['period']): string {
  const today = dayOf(Date.now())
  return period === 'day' ? today : `${today.slice(0, 7)}-01`
}

/** End of the current period in UTC. */
function endOf(period: Budget['period']): number {
  const now = new Date()
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  return period === 'day' ? Date.UTC(year, month, now.getUTCDate() + 1) : Date.UTC(year, month + 1, 1)
}
