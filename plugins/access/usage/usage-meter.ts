/**
 * Collects the usage of the requests of one thread with its costs, added up by tenant, key and model, and sends it to
 * control in batches.
 * bench: micro/usage @hot
 */
import { type RequestContext, type RequestSlot, type TokenUsage, tenantOf } from '#kernel'
import { LabelLimit } from '#shared'
import type { Price, TierPrices } from './config.ts'
import type { ExpectedTokens } from './expected-use.ts'
import { addKinds, type BudgetUse, dayOf, noUsage, type UsageAmount, type UsageRow } from './usage-record.ts'

/** Longest delay of usage that no response waits for. */
const FLUSH_MS = 50
/** Billionths per token, from a price per million tokens. */
const NANO_PER_MICRO = 1_000
/** Kinds of tokens and tiers that are recorded under their names, out of those that workers report. */
const MAX_KINDS = 64
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
  readonly #kinds = new LabelLimit(MAX_KINDS)
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
    if (used.breakdown !== before.breakdown) this.#addKinds(tally, used, before)
    tally.costNano += this.prices.costNano(model, used) - this.prices.costNano(model, before)
    this.#timer ??= setTimeout(() => void this.flush().catch(() => undefined), FLUSH_MS)
    return true
  }

  /** What tokens without a breakdown count. */
  useOf({ model, input, output }: ExpectedTokens): BudgetUse {
    return {
      tokens: input + output,
      costNano: this.prices.costNano(model, { ...NO_TOKENS, input, output }),
    }
  }

  /** All that was counted of a request; null for nothing. */
  usedBy(ctx: RequestContext): BudgetUse | null {
    const counted = this.#parts.slot.get(ctx)
    if (counted === undefined || ctx.model === null) return null
    return { tokens: counted.input + counted.output, costNano: this.prices.costNano(ctx.model, counted) }
  }

  #addKinds(tally: Tally, used: TokenUsage, before: TokenUsage): void {
    tally.kinds ??= {}
    addKinds(tally.kinds, this.#kindsOf(used))
    addKinds(tally.kinds, this.#kindsOf(before), -1)
  }

  #kindsOf({ input, output, breakdown }: TokenUsage): Record<string, number> {
    if (breakdown === undefined) return {}
    const { kinds, tier } = breakdown
    const admitted: Record<string, number> = {}
    for (const [kind, tokens] of Object.entries(kinds))
      addKinds(admitted, { [this.#kinds.admit(kind)]: tokens })
    if (tier !== null) addKinds(admitted, { [this.#kinds.admit(`tier_${tier}`)]: input + output })
    return admitted
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
  /** By kind: by how much a token of it costs more than other tokens of input, of cache writes or of output. */
  readonly surcharges: readonly (readonly [kind: string, nano: number])[]
  readonly tiers: ReadonlyMap<string, TokenPrices>
}

const FREE = toTokenPrices({ input: 0, output: 0, kinds: {} })

/** Costs of token usage by the configured prices. */
export class PriceList {
  readonly #byModel: ReadonlyMap<string, TokenPrices>
  readonly #others: TokenPrices

  constructor(prices: readonly Price[]) {
    this.#byModel = new Map(prices.map((price) => [price.model, toTokenPrices(price, price.tiers)]))
    this.#others = this.#byModel.get('*') ?? FREE
  }

  /** In billionths of the currency. */
  costNano(model: string, { input, output, cached, breakdown }: TokenUsage): number {
    let price = this.#byModel.get(model) ?? this.#others
    if (breakdown === undefined) return Math.round(plainCost(price, input, cached, output))
    if (breakdown.tier !== null) price = price.tiers.get(breakdown.tier) ?? price
    let cost = plainCost(price, input, cached, output)
    for (const [kind, nano] of price.surcharges) cost += nano * (breakdown.kinds[kind] ?? 0)
    return Math.max(0, Math.round(cost))
  }
}

function plainCost(price: TokenPrices, input: number, cached: number, output: number): number {
  return (input - cached) * price.input + cached * price.cached + output * price.output
}

function toTokenPrices(prices: TierPrices, tiers: Price['tiers'] = {}): TokenPrices {
  const { input, cachedInput = input, cacheWrite = input, output, kinds } = prices
  const others: Readonly<Record<string, number>> = { cache_write: cacheWrite, input, output }
  const surcharges = Object.entries(kinds).map(([kind, price]): [string, number] => [
    kind,
    (price - others[kind.slice(0, kind.lastIndexOf('_'))]) * NANO_PER_MICRO,
  ])
  return {
    input: input * NANO_PER_MICRO,
    cached: cachedInput * NANO_PER_MICRO,
    output: output * NANO_PER_MICRO,
    surcharges: [['cache_write', (cacheWrite - input) * NANO_PER_MICRO], ...surcharges],
    tiers: new Map(Object.entries(tiers).map(([tier, ofTier]) => [tier, toTokenPrices(ofTier)])),
  }
}
