/** The reload route. */
import { adminErrorFormat, type Host, type RouteDefinition, Type } from '#kernel'

const AppliedChanges = Type.Object({
  applied: Type.Array(Type.String(), { description: 'Paths of changed settings that were applied.' }),
  needs_restart: Type.Array(Type.String(), {
    description: 'Paths of changed settings that require a restart.',
  }),
})

export function applyConfigRoute(host: Host): RouteDefinition {
  return {
    method: 'POST',
    path: '/config/apply',
    access: 'admin',
    errors: adminErrorFormat,
    handler: async (ctx) => {
      const { applied, needsRestart } = await host.reload()
      ctx.json(200, { applied, needs_restart: needsRestart })
    },
    docs: {
      summary: 'Reload the configuration, like SIGHUP',
      tag: 'Configuration',
      responses: {
        200: { description: 'Changed settings. Requests are not interrupted.', schema: AppliedChanges },
        400: { description: 'The configuration is invalid; nothing was changed.' },
        409: {
          description: 'The gateway was started without a source from which to reload its configuration.',
        },
      },
    },
  }
}
