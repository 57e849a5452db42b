/**
 * Budgets on one thread: whether a request may start. Control knows what is used; this thread adds what it has used since it
 * last asked, and what its running requests are expected to use. Other threads' last 50 ms are missing. @hot
 */
import { type RequestContext, type RequestSlot, retryAfter, tenantOf } from '#kernel'
import type { Budget } from './config.ts'
import { usageErrors } from './errors.ts'
import type { UsageMeter } from './usage-meter.ts'
import { addUse, type BudgetUse, NANO } from './usage-record.ts'

/** State of control that may be used without asking again. */
const FRESH_MS = 1_000
/** Retry-After while running requests hold the rest of a budget. */
const BUSY_RETRY_SEC = 1
const MAX_KNOWN = 10_000
/** For the estimate of a prompt. */
const BYTES_PER_TOKEN = 4

/** One budget of one tenant, as control knows it. */
export interface BudgetState {
  readonly period: Budget['period']
  /** Null for no limit. */
  readonly tokens: number | null
  readonly costNano: number | null
  readonly usedTokens: number
  readonly usedCostNano: number
  /** End of the period, milliseconds since 1970. */
  readonly endsAtMs: number
}

interface Known extends BudgetUse {
  states: readonly BudgetState[]
  /** `tokens` and `costNano` were used on this thread since then. */
  readAtMs: number
  /** Expected tokens of running requests. */
  reserved: number
  reading: Promise<void> | null
}

/** What a running request holds of a budget. */
export interface Reservation {
  readonly known: Known
  readonly tokens: number
}

export type ReadBudgets = (tenant: string, key: string) => Promise<readonly BudgetState[]>

export class Budgets {
  readonly #read: ReadBudgets
  readonly #known = new Map<string, Known>()
  #budgets: readonly Budget[]

  constructor(budgets: readonly Budget[], read: ReadBudgets) {
    this.#budgets = budgets
    this.#read = read
  }

  update(budgets: readonly Budget[]): void {
    this.#budgets = budgets
    this.#known.clear()
  }

  /**
   * Reserves the expected tokens of a request.
   *
   * @returns null if the tenant and the key have no budget
   * @throws budget_exceeded (429) with Retry-After
   */
  reserve(tenant: string, key: string, tokens: number): Reservation | null | Promise<Reservation | null> {
    if (budgetsOf(this.#budgets, tenant, key).length === 0) return null
    const known = this.#knownOf(tenant, key)
    if (Date.now() - known.readAtMs < FRESH_MS) return take(known, tokens)
    known.reading ??= this.#refresh(known, tenant, key)
    return known.reading.then(() => take(known, tokens))
  }

  /** @param used null for a request that used nothing */
  settle({ known, tokens }: Reservation, used: BudgetUse | null): void {
    known.reserved -= tokens
    if (used !== null) addUse(known, used)
  }

  /** Replaces the usage of a settled reservation. */
  correct({ known }: Reservation, before: BudgetUse | null, used: BudgetUse | null): void {
    known.tokens += (used?.tokens ?? 0) - (before?.tokens ?? 0)
    known.costNano += (used?.costNano ?? 0) - (before?.costNano ?? 0)
  }

  #knownOf(tenant: string, key: string): Known {
    const name = `${tenant}\n${key}`
    let known = this.#known.get(name)
    if (known === undefined) {
      known = { states: [], readAtMs: 0, tokens: 0, costNano: 0, reserved: 0, reading: null }
      if (this.#known.size >= MAX_KNOWN) this.#known.clear()
      this.#known.set(name, known)
    }
    return known
  }

  async #refresh(known: Known, tenant: string, key: string): Promise<void> {
    const { tokens, costNano } = known
    try {
      known.states = await this.#read(tenant, key)
      known.readAtMs = Date.now()
      // What was used before the question is in the answer.
      known.tokens -= tokens
      known.costNano -= costNano
    } finally {
      known.reading = null
    }
  }
}

/** Reserves the expected tokens before a request runs, and settles them by its usage at its end. */
export class RequestBudgets {
  readonly #budgets: Budgets
  readonly #meter: UsageMeter
  readonly #reservations: RequestSlot<Reservation>

  constructor(budgets: Budgets, meter: UsageMeter, reservations: RequestSlot<Reservation>) {
    this.#budgets = budgets
    this.#meter = meter
    this.#reservations = reservations
  }

  /** @throws budget_exceeded (429) */
  enter(ctx: RequestContext): Promise<undefined> | undefined {
    const tokens = Math.ceil((Number(ctx.header('content-length')) || 0) / BYTES_PER_TOKEN)
    const reserved = this.#budgets.reserve(tenantOf(ctx), ctx.identity?.keyId ?? '', tokens)
    if (reserved instanceof Promise) return reserved.then((reservation) => this.#keep(ctx, reservation))
    return this.#keep(ctx, reserved)
  }

  /** Counts the usage. Resolves when a correction that arrives later is counted too. */
  end(ctx: RequestContext): Promise<void> | undefined {
    this.#meter.count(ctx)
    const reservation = this.#reservations.get(ctx)
    const used = this.#meter.usedBy(ctx)
    if (reservation !== undefined) this.#budgets.settle(reservation, used)
    return ctx.usageCorrection?.then(() => {
      this.#meter.count(ctx)
      if (reservation !== undefined) this.#budgets.correct(reservation, used, this.#meter.usedBy(ctx))
    })
  }

  #keep(ctx: RequestContext, reservation: Reservation | null): undefined {
    if (reservation === null) return
    // The request may have ended while its budget was read.
    if (ctx.isDone) this.#budgets.settle(reservation, null)
    else this.#reservations.set(ctx, reservation)
  }
}

function take(known: Known, tokens: number): Reservation {
  for (const state of known.states) {
    const usedTokens = state.usedTokens + known.tokens
    const isUsedUp =
      (state.tokens !== null && usedTokens >= state.tokens) ||
      (state.costNano !== null && state.usedCostNano + known.costNano >= state.costNano)
    const isHeld = state.tokens !== null && usedTokens + known.reserved >= state.tokens
    if (isUsedUp || isHeld) throw refusal(state, isUsedUp)
  }
  known.reserved += tokens
  return { known, tokens }
}

function refusal({ tokens, costNano, period, endsAtMs }: BudgetState, isUsedUp: boolean): Error {
  const seconds = isUsedUp ? Math.max(1, Math.ceil((endsAtMs - Date.now()) / 1_000)) : BUSY_RETRY_SEC
  const limits = [
    tokens === null ? '' : `${tokens} tokens`,
    costNano === null ? '' : `a cost of ${costNano / NANO}`,
  ]
  const limit = limits.filter((text) => text !== '').join(' or ')
  return usageErrors.budget_exceeded.with(retryAfter(seconds), limit, period, seconds)
}

/** Budgets of a key and of its tenant; the budget of every tenant applies to tenants without their own. */
export function budgetsOf(budgets: readonly Budget[], tenant: string, key: string): Budget[] {
  const own = budgets.filter((budget) => budget.tenant === tenant)
  const tenantWide = own.filter((budget) => budget.key === undefined)
  const shared = budgets.filter((budget) => budget.tenant === '*' && budget.key === undefined)
  const ofKey = own.filter((budget) => budget.key !== undefined && budget.key === key)
  return [...ofKey, ...(tenantWide.length > 0 ? tenantWide : shared)]
}
