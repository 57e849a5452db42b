/** The reload plugin: plans and applies a changed configuration at runtime over HTTP. */
import { definePlugin, Type } from '#kernel'
import { reloadRoutes } from './routes.ts'

export default definePlugin({
  manifest: {
    name: 'reload',
    version: '0.1.0',
    description:
      'Plans and applies a changed configuration over HTTP, for `weir config`; SIGHUP works without this plugin.',
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    for (const route of reloadRoutes(host)) host.route(route)
  },
})
