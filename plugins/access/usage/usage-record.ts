/** Records of the ledger: usage of one tenant, key and model on one day. */
import { isObject } from '#kernel'

/** What is counted. */
export interface UsageAmount {
  requests: number
  input: number
  output: number
  cached: number
  reasoning: number
  /** In billionths of the currency, so that sums are exact. */
  costNano: number
  /** Tokens by kind, as in `UsageBreakdown`, and of service tiers, such as `tier_priority`. */
  kinds?: Record<string, number>
}

/** What counts against a budget. */
export interface BudgetUse {
  tokens: number
  costNano: number
}

export function addUse(to: BudgetUse, { tokens, costNano }: Readonly<BudgetUse>): void {
  to.tokens += tokens
  to.costNano += costNano
}

export interface UsageRow extends UsageAmount {
  readonly tenant: string
  /** Id of the key; empty without one. */
  readonly key: string
  readonly model: string
  /** Such as `2026-11-26`, in UTC. */
  readonly day: string
}

export type StoredUsageRow = Omit<UsageRow, 'tenant'>

export const DAY_MS = 86_400_000
export const NANO = 1_000_000_000
/** In no name: model labels and key ids have no control characters. */
const SEPARATOR = '\u001f'

const AMOUNTS = ['requests', 'input', 'output', 'cached', 'reasoning', 'costNano'] as const

export function noUsage(): UsageAmount {
  return { requests: 0, input: 0, output: 0, cached: 0, reasoning: 0, costNano: 0 }
}

export function addUsage(to: UsageAmount, from: UsageAmount): void {
  for (const name of AMOUNTS) to[name] += from[name]
  if (from.kinds === undefined) return
  to.kinds ??= {}
  addKinds(to.kinds, from.kinds)
}

/** @param sign -1 to take away */
export function addKinds(to: Record<string, number>, from: Readonly<Record<string, number>>, sign = 1): void {
  for (const [kind, tokens] of Object.entries(from)) to[kind] = (to[kind] ?? 0) + sign * tokens
}

/** Ids sort by day. */
export function rowId({ day, key, model }: StoredUsageRow): string {
  return `${day}${SEPARATOR}${key}${SEPARATOR}${model}`
}

/** Range of the ids of some days, both included. */
export function idsOfDays(from: string, to: string): { from: string; to: string } {
  return { from, to: `${to}${SEPARATOR}\u{10ffff}` }
}

export function isUsageRow(value: unknown): boolean {
  return (
    isObject(value) &&
    ['day', 'key', 'model'].every((name) => typeof value[name] === 'string') &&
    AMOUNTS.every((name) => typeof value[name] === 'number') &&
    (value.kinds === undefined || isObject(value.kinds))
  )
}

/** @param atMs milliseconds since 1970 */
export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10)
}
