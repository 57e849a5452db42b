/**
 * Collects the usage of the requests of one thread with its costs, added up by tenant, key and model, and sends it to
 * control in batches.
 * bench: micro/usage @hot
 */
import { type RequestContext, type RequestSlot, type TokenUsage, tenantOf } from '#kernel'
import type { Price } from './config.ts'
import { type BudgetUse, dayOf, noUsage, type UsageAmount, type UsageRow } from './usage-record.ts'

/** Longest delay of usage that no response waits for. */
const FLUSH_MS = 50
/** Billionths per token, from a price per million tokens. */
const NANO_PER_MICRO = 1_000
const NO_TOKENS: TokenUsage = { input: 0, output: 0, cached: 0, reasoning: 0 }

export interface MeterParts {
  /** Usage of a request that has been counted already. */
  readonly slot: RequestSlot<TokenUsage>
  /** Sends a batch to control; resolves when it is stored. */
  readonly send: (rows: readonly UsageRow[]) => Promise<void>
}

interface Tally extends UsageAmount {
  readonly tenant: string
  readonly key: string
  readonly model: string
}

export class UsageMeter {
  readonly #parts: MeterParts
  prices: PriceList
  #tallies = new Map<string, Tally>()
  #timer: NodeJS.Timeout | null = null
  #flush: Promise<void> | null = null

  constructor(parts: MeterParts, prices: PriceList) {
    this.#parts = parts
    this.prices = prices
  }

  /**
   * Counts what a request has used since the last call for it; a request without an answer and without tokens is not
   * counted.
   *
   * @returns whether anything was counted
   */
  count(ctx: RequestContext): boolean {
    const { model, usage } = ctx
    if (model === null) return false
    const { slot } = this.#parts
    const counted = slot.get(ctx)
    const used = usage ?? NO_TOKENS
    if (counted === undefined) {
      const isAnswered = ctx.status >= 200 && ctx.status < 400 && !ctx.isAborted && ctx.errorCode === null
      if (usage === null && !isAnswered) return false
    } else if (counted === used) return false
    slot.set(ctx, used)
    const before = counted ?? NO_TOKENS
    const tally = this.#tallyOf(tenantOf(ctx), ctx.identity?.keyId ?? '', model)
    if (counted === undefined) tally.requests += 1
    tally.input += used.input - before.input
    tally.output += used.output - before.output
    tally.cached += used.cached - before.cached
    tally.reasoning += used.reasoning - before.reasoning
    tally.costNano += this.prices.costNano(model, used) - this.prices.costNano(model, before)
    this.#timer ??= setTimeout(() => void this.flush().catch(() => undefined), FLUSH_MS)
    return true
  }

  /** All that was counted of a request; null for nothing. */
  usedBy(ctx: RequestContext): BudgetUse | null {
    const counted = this.#parts.slot.get(ctx)
    if (counted === undefined || ctx.model === null) return null
    return { tokens: counted.input + counted.output, costNano: this.prices.costNano(ctx.model, counted) }
  }

  #tallyOf(tenant: string, key: string, model: string): Tally {
    const name = `${tenant}\n${key}\n${model}`
    const known = this.#tallies.get(name)
    if (known !== undefined) return known
    const tally = { tenant, key, model, ...noUsage() }
    this.#tallies.set(name, tally)
    return tally
  }

  /** Stores what was counted so far. @throws usage_not_recorded (503) if the store fails; it is stored later */
  flush(): Promise<void> {
    this.#flush ??= new Promise((resolve) => setImmediate(resolve)).then(() => {
      this.#flush = null
      return this.sendNow()
    })
    return this.#flush
  }

  /** As `flush`, without waiting for other requests of this turn of the event loop. */
  sendNow(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    const day = dayOf(Date.now())
    const rows = [...this.#tallies.values()].map((tally): UsageRow => ({ ...tally, day }))
    this.#tallies = new Map()
    return this.#parts.send(rows)
  }
}

interface TokenPrices {
  readonly input: number
  readonly cached: number
  readonly output: number
}

const FREE: TokenPrices = { input: 0, cached: 0, output: 0 }

/** Costs of token usage by the configured prices. */
export class PriceList {
  readonly #byModel: ReadonlyMap<string, TokenPrices>
  readonly #others: TokenPrices

  constructor(prices: readonly Price[]) {
    this.#byModel = new Map(prices.map((price) => [price.model, toTokenPrices(price)]))
    this.#others = this.#byModel.get('*') ?? FREE
  }

  /** In billionths of the currency. */
  costNano(model: string, { input, output, cached }: TokenUsage): number {
    const price = this.#byModel.get(model) ?? this.#others
    return Math.round((input - cached) * price.input + cached * price.cached + output * price.output)
  }
}

function toTokenPrices({ input, cachedInput = input, output }: Price): TokenPrices {
  return {
    input: input * NANO_PER_MICRO,
    cached: cachedInput * NANO_PER_MICRO,
    output: output * NANO_PER_MICRO,
  }
}
