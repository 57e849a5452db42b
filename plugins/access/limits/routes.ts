/** The limits routes: show the limits with what is in use, change them on all threads while they run. */
import { adminErrorFormat, type Host, type RequestContext, type RouteDefinition, Type } from '#kernel'
import { limitsConfig } from './config.ts'
import { ChangeLimits } from './limits-settings.ts'
import { LimitsReplySchema } from './wire.ts'

const TAG = 'Limits'
const invalid = { description: 'Unknown member or wrong value; nothing has changed.' }
const reply = { description: 'The limits that hold now, and what is in use.', schema: LimitsReplySchema }

/**
 * @param headers that admission reads on other routes
 * @param show the reply for the settings that hold, with the limits of a tenant where one is asked for
 */
export function limitsRoutes(
  host: Host,
  headers: readonly string[],
  show: (tenant: string | null, model: string | null) => unknown,
): readonly RouteDefinition[] {
  const base = {
    path: '/limits',
    access: 'admin',
    errors: adminErrorFormat,
    endpoint: 'limits',
    headers,
  } as const
  const showTo = (ctx: RequestContext) =>
    ctx.json(200, show(ctx.queryParam('tenant'), ctx.queryParam('model')))
  const change = (isWhole: boolean) => async (ctx: RequestContext) => {
    await host.command(ChangeLimits, { body: ctx.bodyJson(), isWhole })
    showTo(ctx)
  }
  return [
    {
      ...base,
      method: 'GET',
      handler: showTo,
      docs: {
        summary: 'Show the limits of admission and their use',
        tag: TAG,
        query: {
          tenant: Type.Optional(
            Type.String({ description: 'Shows what is left to this tenant, such as auth:team-a.' }),
          ),
          model: Type.Optional(Type.String({ description: 'And its rule for this model.' })),
        },
        responses: { 200: reply },
      },
    },
    {
      ...base,
      method: 'PUT',
      handler: change(true),
      docs: {
        summary: 'Replace the limits; members left out take their defaults, until the next start',
        tag: TAG,
        body: limitsConfig,
        responses: { 200: reply, 400: invalid },
      },
    },
    {
      ...base,
      method: 'PATCH',
      handler: change(false),
      docs: {
        summary: 'Change some members of the limits, until the next start; lists are replaced whole',
        tag: TAG,
        body: Type.Partial(limitsConfig),
        responses: { 200: reply, 400: invalid },
      },
    },
  ]
}
