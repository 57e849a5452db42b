/** The reload plugin: takes on a changed configuration while the gateway runs, when an operator asks over HTTP. */
import { definePlugin } from '#kernel'
import { reloadConfig } from './config.ts'
import { applyConfigRoute } from './routes.ts'

export default definePlugin({
  manifest: {
    name: 'reload',
    version: '0.1.0',
    description: 'POST /config/apply, which `weir config apply` calls; SIGHUP does the same without it.',
    config: reloadConfig,
  },
  register(host) {
    host.route(applyConfigRoute(host))
  },
})
