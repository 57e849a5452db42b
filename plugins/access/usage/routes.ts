/** GET /usage: usage of tenants, keys and models. GET /usage/budgets: what is left of budgets. */
import { adminErrorFormat, queryError, type RequestContext, type RouteDefinition, Type } from '#kernel'
import { isTenantName, OTHER, TENANT_FORMS } from '#shared'
import type { OwnedBudget } from './budget-totals.ts'
import { dayOf, NANO } from './usage-record.ts'
import { GROUPS, type Group, type UsageQuery, UsageReport } from './usage-report.ts'

const filter = (description: string) => Type.Optional(Type.String({ description }))

export function usageRoute(read: (query: UsageQuery) => Promise<UsageReport>): RouteDefinition {
  return {
    method: 'GET',
    path: '/usage',
    access: 'admin',
    errors: adminErrorFormat,
    endpoint: 'usage',
    handler: async (ctx) => ctx.json(200, await read(readQuery(ctx))),
    docs: {
      summary: 'Show tokens, requests and costs of tenants',
      tag: 'Usage',
      query: {
        tenant: filter('Only this tenant, such as auth:team-a.'),
        key: filter('Only the key with this id.'),
        model: filter('Only this model.'),
        from: filter('First day in UTC, such as 2026-11-01. Default: the first day of the month of `to`.'),
        to: filter('Last day in UTC. Default: today.'),
        group_by: filter('Any of day, tenant, key and model, separated by commas. Default: tenant,model.'),
      },
      responses: {
        200: { description: 'Usage by group, and in total.', schema: UsageReport },
        400: { description: 'A parameter is invalid, or the report would be too large.' },
      },
    },
  }
}

const amount = (description: string) => Type.Number({ description })

const BudgetView = Type.Object({
  tenant: Type.String(),
  key: Type.Union([Type.String(), Type.Null()], { description: 'Id of a key; null for all of the tenant.' }),
  period: Type.Enum(['day', 'month'], { description: 'In UTC.' }),
  unit: Type.Enum(['cost', 'tokens']),
  limit: amount('The budget, tokens or cost.'),
  used: amount('Used in this period by requests that have ended.'),
  left: amount('What is left; negative after an overrun.'),
  ends_at: Type.String({ description: 'End of the period, ISO 8601.' }),
})

const BudgetList = Type.Object({ budgets: Type.Array(BudgetView) })

/** @param list budgets with their use */
export function budgetsRoute(list: () => Promise<readonly OwnedBudget[]>): RouteDefinition {
  return {
    method: 'GET',
    path: '/usage/budgets',
    access: 'admin',
    errors: adminErrorFormat,
    endpoint: 'usage',
    handler: async (ctx) => ctx.json(200, { budgets: (await list()).flatMap(toBudgetViews) }),
    docs: {
      summary: 'Show budgets and what is left of them',
      tag: 'Usage',
      responses: {
        200: {
          description:
            'By tenant: those of the configuration, and those that have sent requests since the start; one entry per limit.',
          schema: BudgetList,
        },
      },
    },
  }
}

function toBudgetViews(budget: OwnedBudget) {
  const { tenant, key, period, tokens, costNano, usedTokens, usedCostNano, endsAtMs } = budget
  const view = (unit: 'cost' | 'tokens', limit: number, used: number) => ({
    tenant,
    key,
    period,
    unit,
    limit,
    used,
    left: limit - used,
    ends_at: new Date(endsAtMs).toISOString(),
  })
  return [
    ...(tokens === null ? [] : [view('tokens', tokens, usedTokens)]),
    ...(costNano === null ? [] : [view('cost', costNano / NANO, usedCostNano / NANO)]),
  ]
}

function readQuery(ctx: RequestContext): UsageQuery {
  const to = readDay(ctx, 'to') ?? dayOf(Date.now())
  const from = readDay(ctx, 'from') ?? `${to.slice(0, 7)}-01`
  if (from > to) throw queryError('from', `must not be after 'to' (${to}), got ${from}`)
  return {
    tenant: readTenant(ctx.queryParam('tenant')),
    key: ctx.queryParam('key'),
    model: ctx.queryParam('model'),
    from,
    to,
    groupBy: readGroups(ctx.queryParam('group_by')),
  }
}

/** Tenants beyond the limits of the store are recorded as `other`. */
function readTenant(text: string | null): string | null {
  if (text === null || text === OTHER || isTenantName(text)) return text
  throw queryError('tenant', `must be ${TENANT_FORMS}, got ${text.slice(0, 40)}`)
}

function readDay(ctx: RequestContext, parameter: 'from' | 'to'): string | null {
  const text = ctx.queryParam(parameter)
  if (text === null) return null
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time) || dayOf(time) !== text)
    throw queryError(parameter, `must be a day such as 2026-11-01, got ${text.slice(0, 40)}`)
  return text
}

function readGroups(text: string | null): readonly Group[] {
  if (text === null) return ['tenant', 'model']
  return text.split(',').map((part) => {
    const group = GROUPS.find((known) => known === part)
    if (group === undefined)
      throw queryError('group_by', `must list ${GROUPS.join(', ')}, got ${part.slice(0, 40)}`)
    return group
  })
}
