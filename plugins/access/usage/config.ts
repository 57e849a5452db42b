/** Configuration section of the usage plugin. */
import { ANONYMOUS_TENANT, integer, type SettingProblem, type Static, Type } from '#kernel'

const price = (description: string) => Type.Optional(Type.Number({ minimum: 0, description }))

const tokenPrices = {
  input: Type.Number({ minimum: 0, description: 'Price of a million input tokens.' }),
  cachedInput: price(
    'Price of a million input tokens that were read from a cache. Default: the price of input.',
  ),
  cacheWrite: price(
    'Price of a million input tokens that were written to a cache. Default: the price of input.',
  ),
  output: Type.Number({ minimum: 0, description: 'Price of a million output tokens, reasoning included.' }),
  kinds: Type.Record(
    Type.String({ pattern: '^(cache_write|input|output)_[a-z0-9]+$' }),
    Type.Number({ minimum: 0 }),
    {
      default: {},
      description:
        'Prices of a million tokens of certain kinds: `cache_write_<time to live>` such as `cache_write_1h`, `input_<modality>` and `output_<modality>` such as `input_audio`. A kind without a price costs as much as cacheWrite, input or output.',
    },
  ),
}

const priceConfig = Type.Object(
  {
    model: Type.String({
      minLength: 1,
      description: 'Canonical model id; `*` is the price of every model without one of its own.',
    }),
    ...tokenPrices,
    tiers: Type.Record(Type.String(), Type.Object(tokenPrices, { additionalProperties: false }), {
      default: {},
      description:
        'Prices of service tiers that workers report, such as `priority`, `flex` or `batch`; other tiers have the prices of the model.',
    }),
  },
  { additionalProperties: false },
)

const limit = (description: string) =>
  Type.Union([Type.Number({ exclusiveMinimum: 0 }), Type.Null()], { default: null, description })

const budgetConfig = Type.Object(
  {
    tenant: Type.String({
      minLength: 1,
      description:
        'Tenant such as `auth:team-a`; `*` gives every tenant without a budget of its own this one.',
    }),
    key: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'Id of one key of the tenant. Default: all of its keys together.',
      }),
    ),
    period: Type.Enum(['day', 'month'], {
      default: 'month',
      description: 'Calendar day or month in UTC, at whose end the budget starts again.',
    }),
    tokens: limit('Input and output tokens per period; null for no limit.'),
    cost: limit('Cost per period, in the currency of `prices`; null for no limit.'),
  },
  { additionalProperties: false },
)

export const usageConfig = Type.Object(
  {
    durable: Type.Boolean({
      default: false,
      description:
        'True delays the end of each response until its usage is on disk, so that not even `kill -9` or a power loss loses the usage of a completed response. False writes usage up to 50 ms after the response.',
    }),
    prices: Type.Array(priceConfig, { default: [], description: 'Prices of models, in any one currency.' }),
    budgets: Type.Array(budgetConfig, {
      default: [],
      description: 'Budgets; requests of a tenant or key whose budget is used up are rejected with 429.',
    }),
    keepDays: integer({ default: 400, min: 32 }, 'Days for which usage is kept.'),
  },
  { additionalProperties: false },
)

/** The section with all defaults. */
export type UsageConfig = Static<typeof usageConfig>
export type Price = UsageConfig['prices'][number]
export type TierPrices = Price['tiers'][string]
export type Budget = UsageConfig['budgets'][number]

/** What the schema cannot express; prices and budgets that can never apply are errors. */
export function* usageProblems({ prices, budgets }: UsageConfig): Generator<SettingProblem> {
  const models = new Set<string>()
  for (const [index, { model }] of prices.entries()) {
    if (models.has(model))
      yield { path: ['prices', String(index), 'model'], text: `has an earlier price (${model})` }
    models.add(model)
  }
  for (const [index, { tenant, key, tokens, cost }] of budgets.entries()) {
    const path = ['budgets', String(index)]
    if (tokens === null && cost === null) yield { path, text: 'must have a limit: set tokens or cost' }
    if (cost !== null && prices.length === 0)
      yield {
        path: [...path, 'cost'],
        text: 'requires plugins.usage.prices; without prices, nothing costs anything',
      }
    if (tenant !== '*' && tenant !== ANONYMOUS_TENANT && !/^(?:auth|jwt):./.test(tenant)) {
      const text = `must be auth:<id>, jwt:<claim>, ${ANONYMOUS_TENANT} or * (got ${tenant.slice(0, 80)})`
      yield { path: [...path, 'tenant'], text }
    } else if (key !== undefined && !tenant.startsWith('auth:'))
      yield {
        path: [...path, 'key'],
        text: `must be left out: only keys of tenants auth:<id> have an id (got tenant ${tenant})`,
      }
  }
}
