/**
 * Budgets on one thread: whether a request may start. Control knows what is used; this thread adds what it has used since it
 * last asked, and what running requests of all threads may use. What other threads used in the last second is missing. @hot
 */
import { type RequestContext, type RequestSlot, retryAfter, tenantOf } from '#kernel'
import type { Budget } from './config.ts'
import { usageErrors } from './errors.ts'
import { expectedTokens } from './expected-use.ts'
import type { HeldUse } from './held-use.ts'
import type { UsageMeter } from './usage-meter.ts'
import { addUse, type BudgetUse, NANO } from './usage-record.ts'

/** State of control that may be used without asking again. */
const FRESH_MS = 1_000
/** Retry-After while running requests hold the rest of a budget. */
const BUSY_RETRY_SEC = 1
const MAX_KNOWN = 10_000
/** Their requests have no output. */
const WITHOUT_OUTPUT: ReadonlySet<string> = new Set(['classify', 'embeddings', 'rerank'])

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
  /** In `HeldUse`. */
  readonly place: number
}

interface Known extends BudgetUse {
  states: readonly BudgetState[]
  /** `tokens` and `costNano` were used on this thread since then. */
  readAtMs: number
  reading: Promise<void> | null
}

/** What a running request holds of its budgets. */
export interface Reservation {
  readonly known: Known
  readonly places: readonly number[]
  readonly use: BudgetUse
}

export type ReadBudgets = (tenant: string, key: string) => Promise<readonly BudgetState[]>

export class Budgets {
  readonly #read: ReadBudgets
  readonly #held: HeldUse
  readonly #known = new Map<string, Known>()
  #budgets: readonly Budget[]

  constructor(budgets: readonly Budget[], read: ReadBudgets, held: HeldUse) {
    this.#budgets = budgets
    this.#read = read
    this.#held = held
  }

  has(tenant: string, key: string): boolean {
    return budgetsOf(this.#budgets, tenant, key).length > 0
  }

  update(budgets: readonly Budget[]): void {
    this.#budgets = budgets
    this.#known.clear()
  }

  /**
   * Holds what a request may use. A request that would exceed a budget with the running ones waits for them; alone it starts.
   *
   * @throws budget_exceeded (429) with Retry-After
   */
  reserve(tenant: string, key: string, use: BudgetUse): Reservation | Promise<Reservation> {
    const known = this.#knownOf(tenant, key)
    if (Date.now() - known.readAtMs < FRESH_MS) return this.#take(known, use)
    known.reading ??= this.#refresh(known, tenant, key)
    return known.reading.then(() => this.#take(known, use))
  }

  /** @param used null for a request that used nothing */
  settle({ known, places, use }: Reservation, used: BudgetUse | null): void {
    for (const place of places) this.#held.add(place, use, -1)
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
      known = { states: [], readAtMs: 0, tokens: 0, costNano: 0, reading: null }
      if (this.#known.size >= MAX_KNOWN) this.#known.clear()
      this.#known.set(name, known)
    }
    return known
  }

  #take(known: Known, use: BudgetUse): Reservation {
    const reservation = { known, places: known.states.map(({ place }) => place), use }
    // Held before the check: of two threads at the same moment, at least one sees the other.
    for (const place of reservation.places) this.#held.add(place, use)
    for (const state of known.states) {
      const used = { tokens: state.usedTokens + known.tokens, costNano: state.usedCostNano + known.costNano }
      const isUsedUp = reaches(state, used)
      const held = this.#held.total(state.place)
      const isAlone = held.tokens === use.tokens && held.costNano === use.costNano
      addUse(used, held)
      if (!isUsedUp && (isAlone || !reaches(state, used))) continue
      this.settle(reservation, null)
      throw refusal(state, isUsedUp)
    }
    return reservation
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

/** Holds what a request may use before it runs, and replaces that by its usage at its end. */
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
    const [tenant, key] = [tenantOf(ctx), ctx.identity?.keyId ?? '']
    if (!this.#budgets.has(tenant, key)) return
    const expected = expectedTokens(ctx.bodyBytes, !WITHOUT_OUTPUT.has(ctx.route.endpoint ?? ''))
    const reserved = this.#budgets.reserve(tenant, key, this.#meter.useOf(expected))
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

  #keep(ctx: RequestContext, reservation: Reservation): undefined {
    // The request may have ended while its budget was read.
    if (ctx.isDone) this.#budgets.settle(reservation, null)
    else this.#reservations.set(ctx, reservation)
  }
}

function reaches({ tokens, costNano }: BudgetState, used: BudgetUse): boolean {
  return (tokens !== null && used.tokens >= tokens) || (costNano !== null && used.costNano >= costNano)
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
