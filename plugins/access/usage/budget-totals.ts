/** What tenants and keys with budgets have used in the current periods. Runs on control. */
import type { Collection } from '#kernel'
import { pagesOf } from '#shared'
import type { BudgetCounters } from './budget-counters.ts'
import { type BudgetState, budgetsOf } from './budgets.ts'
import type { Budget } from './config.ts'
import { HELD_PLACES } from './held-use.ts'
import type { Ledger } from './ledger.ts'
import {
  addUse,
  type BudgetUse,
  dayOf,
  idsOfDays,
  NANO,
  type StoredUsageRow,
  type UsageRow,
} from './usage-record.ts'

/** With a store that several gateways share, totals are read again after this time. */
const SHARED_FRESH_MS = 5_000
const MAX_KNOWN = 10_000

interface Total extends BudgetUse {
  readonly tenant: string
  /** Null for all keys of the tenant. */
  readonly key: string | null
  readonly firstDay: string
  readonly readAtMs: number
}

/** A budget with its owner. */
export interface OwnedBudget extends BudgetState {
  readonly tenant: string
  /** Null for all keys of the tenant. */
  readonly key: string | null
}

export class BudgetTotals {
  readonly #records: Collection<StoredUsageRow>
  readonly #isShared: boolean
  readonly #ledger: () => Ledger
  /** Null unless gateways share their budgets through the mesh. */
  readonly #counters: BudgetCounters | null
  /** Stored usage by tenant, key and period. */
  readonly #totals = new Map<string, Total>()
  /** Places of budgets in `HeldUse`, in the order of their first request. */
  readonly #places = new Map<string, number>()
  budgets: readonly Budget[]

  constructor(
    records: Collection<StoredUsageRow>,
    budgets: readonly Budget[],
    isShared: boolean,
    ledger: () => Ledger,
    counters: BudgetCounters | null,
  ) {
    this.#records = records
    this.budgets = budgets
    this.#isShared = isShared
    this.#ledger = ledger
    this.#counters = counters
  }

  async read(tenant: string, key: string): Promise<BudgetState[]> {
    const budgets = budgetsOf(this.budgets, tenant, key)
    const names = budgets.map((budget) => counterOf(tenant, budget, firstDayOf(budget.period)))
    const counted = await this.#counters?.read(names)
    return Promise.all(budgets.map((budget, at) => this.#state(tenant, budget, counted?.[at])))
  }

  /** Budgets of the tenants in the configuration, and of those that have sent requests; by tenant. */
  async list(): Promise<OwnedBudget[]> {
    const tenants = new Set(this.budgets.map(({ tenant }) => tenant).filter((tenant) => tenant !== '*'))
    for (const { tenant } of this.#totals.values()) tenants.add(tenant)
    const owned = [...tenants].sort().flatMap((tenant) => {
      const ofKeys = this.budgets.filter((budget) => budget.tenant === tenant && budget.key !== undefined)
      return [...budgetsOf(this.budgets, tenant, ''), ...ofKeys].map((budget) => ({ tenant, budget }))
    })
    const names = owned.map(({ tenant, budget }) => counterOf(tenant, budget, firstDayOf(budget.period)))
    const counted = await this.#counters?.read(names)
    return Promise.all(
      owned.map(async ({ tenant, budget }, at) => ({
        tenant,
        key: budget.key ?? null,
        ...(await this.#state(tenant, budget, counted?.[at])),
      })),
    )
  }

  async #state(tenant: string, budget: Budget, counted: BudgetUse | undefined): Promise<BudgetState> {
    const { period, tokens, cost } = budget
    const total = { ...(await this.#total(tenant, budget.key ?? null, period)) }
    for (const row of this.#ledger().unstored()) addTo(total, row)
    return {
      period,
      tokens,
      costNano: cost === null ? null : cost * NANO,
      // The ledger of this gateway knows more if the engine has lost its data.
      usedTokens: Math.max(total.tokens, counted?.tokens ?? 0),
      usedCostNano: Math.max(total.costNano, counted?.costNano ?? 0),
      endsAtMs: endOf(period),
      place: this.#placeOf(nameOf(tenant, budget.key ?? null, period)),
    }
  }

  /** Counts usage for all gateways. */
  onUsage(rows: Iterable<UsageRow>): void {
    if (this.#counters === null) return
    for (const row of rows)
      for (const budget of budgetsOf(this.budgets, row.tenant, row.key)) {
        const firstDay = budget.period === 'day' ? row.day : firstOfMonth(row.day)
        this.#counters.add(counterOf(row.tenant, budget, firstDay), useOf(row), endOf(budget.period))
      }
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

  #placeOf(name: string): number {
    const known = this.#places.get(name)
    if (known !== undefined) return known
    if (this.#places.size >= HELD_PLACES) this.#places.clear()
    const place = this.#places.size
    this.#places.set(name, place)
    return place
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
    for await (const records of pagesOf(this.#records, tenant, idsOfDays(firstDay, '9')))
      for (const { value } of records) addTo(total, { tenant, ...value })
    return total
  }
}

function nameOf(tenant: string, key: string | null, period: Budget['period']): string {
  return `${tenant}\n${key ?? ''}\n${period}`
}

function addTo(total: Total, row: UsageRow): void {
  const isOfKey = total.key === null || total.key === row.key
  if (row.tenant !== total.tenant || !isOfKey || row.day < total.firstDay) return
  addUse(total, useOf(row))
}

function useOf({ input, output, costNano }: UsageRow): BudgetUse {
  return { tokens: input + output, costNano }
}

function firstDayOf(period: Budget['period']): string {
  const today = dayOf(Date.now())
  return period === 'day' ? today : firstOfMonth(today)
}

function firstOfMonth(day: string): string {
  return `${day.slice(0, 7)}-01`
}

/** The same on every gateway. */
function counterOf(tenant: string, { key, period }: Budget, firstDay: string): string {
  return `${nameOf(tenant, key ?? null, period)}\n${firstDay}`
}

/** End of the current period in UTC. */
function endOf(period: Budget['period']): number {
  const now = new Date()
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  return period === 'day' ? Date.UTC(year, month, now.getUTCDate() + 1) : Date.UTC(year, month + 1, 1)
}
