/** GET /usage: usage of tenants, keys and models. */
import { adminErrorFormat, type RequestContext, type RouteDefinition, Type } from '#kernel'
import { isTenantName, OTHER, TENANT_FORMS } from '#shared'
import { usageErrors } from './errors.ts'
import { dayOf } from './usage-record.ts'
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

function readQuery(ctx: RequestContext): UsageQuery {
  const to = readDay(ctx, 'to') ?? dayOf(Date.now())
  const from = readDay(ctx, 'from') ?? `${to.slice(0, 7)}-01`
  if (from > to) throw usageErrors.invalid_usage_query('from', `must not be after 'to' (${to}), got ${from}`)
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
  throw usageErrors.invalid_usage_query('tenant', `must be ${TENANT_FORMS}, got ${text.slice(0, 40)}`)
}

function readDay(ctx: RequestContext, parameter: 'from' | 'to'): string | null {
  const text = ctx.queryParam(parameter)
  if (text === null) return null
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time) || dayOf(time) !== text)
    throw usageErrors.invalid_usage_query(
      parameter,
      `must be a day such as 2026-11-01, got ${text.slice(0, 40)}`,
    )
  return text
}

function readGroups(text: string | null): readonly Group[] {
  if (text === null) return ['tenant', 'model']
  return text.split(',').map((part) => {
    const group = GROUPS.find((known) => known === part)
    if (group === undefined)
      throw usageErrors.invalid_usage_query(
        'group_by',
        `must list ${GROUPS.join(', ')}, got ${part.slice(0, 40)}`,
      )
    return group
  })
}
