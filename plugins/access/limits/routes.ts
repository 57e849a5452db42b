/** Routes of the limits: GET shows the limits and their use, PUT and PATCH change them on all threads until restart, or on all gateways. */
import { adminErrorFormat, type Host, type RequestContext, type RouteDefinition, Type } from '#kernel'
import { limitsConfig } from './config.ts'
import { ChangeLimits } from './limits-settings.ts'
import { PRIORITIES } from './scheduler/scheduler-config.ts'

const count = (description: string) => Type.Integer({ description })

const ClassUseSchema = Type.Object({
  running: count('Running requests.'),
  waiting: count('Waiting requests.'),
})

const LimitsResponse = Type.Object({
  limits: limitsConfig,
  use: Type.Object({
    inUse: count('Permits of the concurrency limit in use, over all threads.'),
    waiting: count('Requests waiting for a permit.'),
    rateLeft: Type.Union([Type.Integer(), Type.Null()], {
      description: 'Requests that may start now; null without a rate limit.',
    }),
    scheduler: Type.Union(
      [
        Type.Object({
          capacity: count('Slots over all threads.'),
          classes: Type.Object(Object.fromEntries(PRIORITIES.map((name) => [name, ClassUseSchema]))),
        }),
        Type.Null(),
      ],
      { description: 'Null if the scheduler is disabled.' },
    ),
    tenant: Type.Optional(
      Type.Array(
        Type.Object({
          unit: Type.Enum(['requests', 'tokens']),
          ruleId: Type.Union([Type.String(), Type.Null()]),
          perMinute: count('The limit.'),
          left: count('Remaining requests or tokens; negative after an overrun.'),
        }),
        { description: 'Limits of the tenant in the query parameter `tenant`.' },
      ),
    ),
    tenantRunning: Type.Optional(
      count('Running requests of that tenant; 0 while `maxConcurrentRequests` does not limit it.'),
    ),
  }),
})

const TAG = 'Limits'
const invalid = { description: 'Unknown member or invalid value; nothing was changed.' }
const shown = { description: 'Current limits and their use.', schema: LimitsResponse }

/**
 * @param headers that admission reads on other routes
 * @param show returns the response body, with the limits of one tenant if its name is given
 */
export function limitsRoutes(
  host: Host,
  headers: readonly string[],
  show: (tenant: string | null, model: string | null) => Promise<unknown>,
): readonly RouteDefinition[] {
  const base = {
    path: '/limits',
    access: 'admin',
    errors: adminErrorFormat,
    endpoint: 'limits',
    headers,
  } as const
  const showTo = async (ctx: RequestContext) =>
    ctx.json(200, await show(ctx.queryParam('tenant'), ctx.queryParam('model')))
  const change = (isWhole: boolean) => async (ctx: RequestContext) => {
    await host.command(ChangeLimits, { body: ctx.bodyJson(), isWhole })
    await showTo(ctx)
  }
  return [
    {
      ...base,
      method: 'GET',
      handler: showTo,
      docs: {
        summary: 'Show the limits and their use',
        tag: TAG,
        query: {
          tenant: Type.Optional(
            Type.String({
              description: 'Adds the remaining requests and tokens of this tenant, such as auth:team-a.',
            }),
          ),
          model: Type.Optional(
            Type.String({ description: 'Includes the rule of the tenant for this model.' }),
          ),
        },
        responses: { 200: shown },
      },
    },
    {
      ...base,
      method: 'PUT',
      handler: change(true),
      docs: {
        summary:
          'Replace the limits until the next restart, in a mesh on all gateways; omitted members take their defaults',
        tag: TAG,
        body: limitsConfig,
        responses: { 200: shown, 400: invalid },
      },
    },
    {
      ...base,
      method: 'PATCH',
      handler: change(false),
      docs: {
        summary:
          'Change members of the limits until the next restart, in a mesh on all gateways; lists are replaced',
        tag: TAG,
        body: Type.Partial(limitsConfig),
        responses: { 200: shown, 400: invalid },
      },
    },
  ]
}
