/** The auth plugin: API keys, tokens and the audit log of the control plane. */
import { Auth, definePlugin, type Host, Keys, type RouteDefinition } from '#kernel'
import { auditDenial, auditSuccess } from './audit.ts'
import { KeyAuth } from './check.ts'
import { type AuthConfig, authConfig } from './config.ts'
import { authFlags } from './flags.ts'
import { keyProblems, readKeys } from './keys.ts'
import { jwtProblems, TokenVerifier } from './tokens.ts'

export default definePlugin({
  manifest: {
    name: 'auth',
    version: '0.1.0',
    description: 'API keys and tokens for serving routes, tenants and the control plane.',
    provides: [Auth, Keys],
    config: authConfig,
    flags: authFlags,
    reloads: ['apiKey', 'tenantKeys', 'controlPlaneKeys', 'keys'],
  },
  *check(config) {
    yield* keyProblems(config)
    if (config.jwt !== undefined) yield* jwtProblems(config.jwt)
  },
  register(host, config) {
    // Every thread reads the keys; control alone logs mistakes.
    const log = host.isControl ? host.log : { warn() {} }
    const tokens = config.jwt === undefined ? null : new TokenVerifier(config.jwt, host.log)
    const auth = new KeyAuth(readKeys(config, log), tokens)
    host.provide(Auth, auth)
    host.provide(Keys, auth)
    if (config.auditLog && host.kernelConfig.auth !== 'off') audit(host)
    return {
      start: () => warnOfUnknownRoutes(host, config),
      planReload: (next) => {
        auth.assertStaysClosed(readKeys(next, log))
        return []
      },
      reload: (next) => {
        auth.use(readKeys(next, log))
        warnOfUnknownRoutes(host, next)
      },
    }
  },
})

/** The labels depend on the enabled plugins; a key with an unknown one opens less than was meant. */
function warnOfUnknownRoutes(host: Host, { keys }: AuthConfig): void {
  if (!host.isControl || keys.every(({ routes }) => routes === undefined)) return
  const known = new Set(host.routes().map(({ endpoint }) => endpoint ?? 'other'))
  for (const { id, routes = [] } of keys)
    for (const label of routes)
      if (!known.has(label))
        host.log.warn(
          { key_id: id, route: label, known: [...known].sort() },
          'a key names an unknown endpoint',
        )
}

function audit(host: Host): void {
  // Early: logged even if another plugin's hook responds.
  const controlPlane = {
    scope: 'all',
    order: 'early',
    routes: (route: RouteDefinition) => route.access === 'admin',
  } as const
  host.hook('onRequest', (ctx) => auditSuccess(host.log, ctx), controlPlane)
  host.hook(
    'onError',
    (ctx, error) => {
      auditDenial(host.log, ctx, error)
      return error
    },
    controlPlane,
  )
}
