/** The reload route: HTTP in and out only; control reads the file. */
import { adminErrorFormat, type Host, type RouteDefinition } from '#kernel'
import { AppliedReply } from './wire.ts'

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
      summary: 'Read the configuration anew, as SIGHUP does',
      tag: 'Configuration',
      responses: {
        200: { description: 'What changed; requests go on meanwhile.', schema: AppliedReply },
        400: { description: 'The configuration has mistakes; nothing was changed.' },
        409: { description: 'This gateway was started without a way to read its configuration.' },
      },
    },
  }
}
