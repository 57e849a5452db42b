/** The limits section of the configuration file: how many requests at once, how many a second, and for whom. */
import { type Static, Type } from '#kernel'
import { schedulerConfig } from './scheduler-config.ts'
import { MAX_COUNT } from './shared-gate.ts'

const ONE_DAY_MS = 86_400_000
const MAX_PER_MINUTE = 1_000_000_000

const perMinute = (description: string) =>
  Type.Union([Type.Integer({ minimum: 1, maximum: MAX_PER_MINUTE }), Type.Null()], {
    default: null,
    description,
  })

const tenantLimits = {
  requestsPerMinute: perMinute('Requests a minute, and as many at once; null: no limit.'),
  tokensPerMinute: perMinute('Prompt and completion tokens a minute, and as many at once; null: no limit.'),
  modelRules: Type.Array(
    Type.Object(
      {
        ruleId: Type.String({ minLength: 1, description: 'Name of the rule, for refusals.' }),
        match: Type.Enum(['exact', 'prefix'], {
          description:
            'Whether `model` is the whole name or its beginning. Exact beats prefix, longer beats shorter.',
        }),
        model: Type.String({
          minLength: 1,
          description: 'Name or beginning of the name, as the request says it.',
        }),
        requestsPerMinute: perMinute('As above, for this rule alone.'),
        tokensPerMinute: perMinute('As above, for this rule alone.'),
      },
      { additionalProperties: false },
    ),
    { default: [], description: 'Further limits on some models; at most one rule applies to a request.' },
  ),
}

const tenantsConfig = Type.Object(
  {
    default: Type.Object(tenantLimits, {
      default: {},
      additionalProperties: false,
      description: 'Limits of each tenant that has none of its own.',
    }),
    overrides: Type.Array(
      Type.Object(
        {
          tenant: Type.String({
            minLength: 1,
            description: '`auth:<id>`, `jwt:<claim>`, `header:<value>`, `ip:<address>` or `anonymous`.',
          }),
          ...tenantLimits,
        },
        { additionalProperties: false },
      ),
      { default: [], description: 'Limits of single tenants; each stands in place of the default, whole.' },
    ),
    trustTenantHeader: Type.Boolean({
      default: false,
      description:
        'Callers without a key or token of their own are told apart by the tenant header. Only behind a proxy that sets it.',
    }),
    tenantHeaderName: Type.String({
      default: 'x-weir-tenant-id',
      pattern: '^[a-z0-9-]+$',
      description: 'Name of that header, lower-case. Fixed at boot.',
    }),
    maxTenants: Type.Integer({
      default: 10_000,
      minimum: 8,
      maximum: 1_000_000,
      description:
        'Tenants that may be busy at once; beyond it, the one that has used least starts anew. 64 bytes each. Fixed at boot.',
    }),
  },
  { default: {}, additionalProperties: false },
)

export const limitsConfig = Type.Object(
  {
    maxConcurrentRequests: Type.Integer({
      default: -1,
      maximum: MAX_COUNT,
      description: 'Requests that run at once, over all threads; 0 or less: no limit.',
    }),
    queueSize: Type.Integer({
      default: 100,
      minimum: 0,
      maximum: MAX_COUNT,
      description: 'Requests that may wait for one of them to end, over all threads; 0: none.',
    }),
    queueTimeoutMs: Type.Integer({
      default: 60_000,
      minimum: 1,
      maximum: ONE_DAY_MS,
      description: 'How long each may wait, in milliseconds.',
    }),
    requestsPerSecond: Type.Number({
      default: 0,
      minimum: 0,
      maximum: 1_000_000,
      description:
        'Requests that may begin each second, over all threads; fractions are allowed, 0: no limit.',
    }),
    burst: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 1_000_000,
      description: 'Requests that may begin at the same moment; 0: as many as in one second, at least 1.',
    }),
    tenants: tenantsConfig,
    scheduler: schedulerConfig,
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type LimitsConfig = Static<typeof limitsConfig>
export type TenantLimits = LimitsConfig['tenants']['default']
export type ModelRule = TenantLimits['modelRules'][number]
