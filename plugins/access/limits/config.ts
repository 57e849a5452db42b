/** Configuration section of the limits plugin. */
import { integer, number, type Static, Type } from '#kernel'
import { MAX_COUNT } from './permits/shared-permits.ts'
import { MAX_RUNNING } from './running/running-table.ts'
import { schedulerConfig } from './scheduler/scheduler-config.ts'

const ONE_DAY_MS = 86_400_000
const MAX_PER_MINUTE = 1_000_000_000

const perMinute = (description: string) =>
  Type.Union([Type.Integer({ minimum: 1, maximum: MAX_PER_MINUTE }), Type.Null()], {
    default: null,
    description,
  })

const tenantLimits = {
  maxConcurrentRequests: Type.Union([Type.Integer({ minimum: 1, maximum: MAX_RUNNING }), Type.Null()], {
    default: null,
    description:
      'Maximum number of running requests over all threads of this gateway, those in its queues included; null disables the limit.',
  }),
  requestsPerMinute: perMinute('Requests per minute, also the burst; null disables the limit.'),
  tokensPerMinute: perMinute(
    'Prompt and completion tokens per minute, also the burst; null disables the limit.',
  ),
  modelRules: Type.Array(
    Type.Object(
      {
        ruleId: Type.String({ minLength: 1, description: 'Name of the rule, shown in errors.' }),
        match: Type.Enum(['exact', 'prefix'], {
          description:
            'Whether `model` is a full name or a prefix. An exact match wins over a prefix, a longer prefix over a shorter one.',
        }),
        model: Type.String({
          minLength: 1,
          description: 'Model name or prefix.',
        }),
        requestsPerMinute: perMinute('As for the tenant, for requests that match this rule.'),
        tokensPerMinute: perMinute('As for the tenant, for requests that match this rule.'),
      },
      { additionalProperties: false },
    ),
    { default: [], description: 'Additional limits by model; at most one rule applies to a request.' },
  ),
}

const tenantsConfig = Type.Object(
  {
    default: Type.Object(tenantLimits, {
      default: {},
      additionalProperties: false,
      description: 'Limits of each tenant without an override.',
    }),
    overrides: Type.Array(
      Type.Object(
        {
          tenant: Type.String({
            minLength: 1,
            description:
              '`auth:<id>`, `jwt:<claim>`, `header:<value>`, `ip:<address>` or `anonymous`. An IPv6 address stands for its /64 network.',
          }),
          ...tenantLimits,
        },
        { additionalProperties: false },
      ),
      { default: [], description: 'Limits by tenant; an override replaces the default completely.' },
    ),
    trustTenantHeader: Type.Boolean({
      default: false,
      description:
        'Identifies requests without credentials by the tenant header. Enable only behind a proxy that sets it.',
    }),
    tenantHeaderName: Type.String({
      default: 'x-weir-tenant-id',
      pattern: '^[a-z0-9-]+$',
      description: 'Name of the tenant header, lower-case. Requires a restart.',
    }),
    maxTenants: integer(
      { default: 10_000, min: 8, max: 1_000_000 },
      'Maximum number of tenants tracked at once (64 bytes each); beyond it, the tenant with the most remaining is evicted. Requires a restart.',
    ),
  },
  { default: {}, additionalProperties: false },
)

export const limitsConfig = Type.Object(
  {
    maxConcurrentRequests: integer(
      { default: -1, max: MAX_COUNT },
      'Maximum number of running requests over all threads; 0 or less disables the limit.',
    ),
    queueSize: integer(
      { default: 100, min: 0, max: MAX_COUNT },
      'Maximum number of requests waiting for a permit, over all threads; 0 disables the queue.',
    ),
    queueTimeoutMs: integer(
      { default: 60_000, min: 1, max: ONE_DAY_MS },
      'Maximum time in the queue, in milliseconds.',
    ),
    requestsPerSecond: number(
      { default: 0, min: 0, max: 1_000_000 },
      'Requests admitted per second over all threads, and over all gateways that share limits in a mesh; may be fractional, 0 disables the limit.',
    ),
    burst: integer(
      { default: 0, min: 0, max: 1_000_000 },
      'Requests that may be admitted at once; 0 uses the requests of one second, at least 1. Must be 0 if gateways share limits in a mesh.',
    ),
    tenants: tenantsConfig,
    scheduler: schedulerConfig,
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type LimitsConfig = Static<typeof limitsConfig>
export type TenantLimits = LimitsConfig['tenants']['default']
export type ModelRule = TenantLimits['modelRules'][number]
