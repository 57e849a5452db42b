/** The reload plugin: applies a changed configuration at runtime over HTTP. */
import { definePlugin, Type } from '#kernel'
import { applyConfigRoute } from './routes.ts'

export default definePlugin({
  manifest: {
    name: 'reload',
    version: '0.1.0',
    description:
      'Applies a changed configuration by POST /config/apply and `weir config apply`; SIGHUP works without this plugin.',
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    host.route(applyConfigRoute(host))
  },
})
