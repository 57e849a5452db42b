/** Costs of token usage by the configured prices. */
import type { TokenUsage } from '#kernel'
import type { Price } from './config.ts'

/** Billionths per token, from a price per million tokens. */
const NANO_PER_MICRO = 1_000
export const NANO = 1_000_000_000

interface TokenPrices {
  readonly input: number
  readonly cached: number
  readonly output: number
}

const FREE: TokenPrices = { input: 0, cached: 0, output: 0 }

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
