/** The console plugin: the pages for operators at /console, and their sessions. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import {
  Auth,
  adminErrorFormat,
  definePlugin,
  defineReplica,
  Mesh,
  type RouteDefinition,
  Sessions,
} from '#kernel'
import { AppFiles } from './app-files.ts'
import { consoleConfig } from './config.ts'
import { SECRET_BYTES } from './session-cookie.ts'
import { handleSessionCommands, sessionRoutes } from './session-routes.ts'
import { ConsoleSessions } from './sessions.ts'
import { SignInLimit } from './sign-in-limit.ts'

/** Key of the session cookies. In memory only: sessions end with the gateway. */
const SecretReplica = defineReplica<Uint8Array | null>('console.secret', null)

export default definePlugin({
  manifest: {
    name: 'console',
    version: '0.1.0',
    description: 'Pages for operators at /console, with sign-in by a control-plane key or token.',
    provides: [Sessions],
    usesOptionally: [Auth, Mesh],
    config: consoleConfig,
  },
  register(host, config) {
    const secret = host.replica(SecretReplica)
    const sessions = new ConsoleSessions({
      auth: host.kernelConfig.auth === 'off' ? null : (host.find(Auth) ?? null),
      secret: () => secret.current,
      lifeSecs: config.sessionSecs,
      hasTls: () => host.kernelConfig.tls !== undefined,
    })
    host.provide(Sessions, sessions)
    const files = new AppFiles()
    for (const route of [...fileRoutes(files), ...sessionRoutes(host, sessions)]) host.route(route)
    handleSessionCommands(host, new SignInLimit(), () => host.find(Mesh)?.name ?? hostname())
    return {
      async start() {
        if (host.isControl) await host.publish(SecretReplica, randomBytes(SECRET_BYTES))
        if (host.isData && !files.load()) host.log.warn({}, 'the pages of the console are not built')
      },
    }
  },
})

function fileRoutes(files: AppFiles): readonly RouteDefinition[] {
  const base = {
    method: 'GET',
    access: 'public',
    errors: adminErrorFormat,
    headers: ['accept-encoding'],
  } as const
  const responses = {
    200: { description: 'The file.' },
    404: { description: 'The console has no such file.' },
  }
  const docs = { summary: 'A file of the console', tag: 'Console', isHidden: true, responses }
  return [
    { ...base, path: '/console', handler: (ctx) => files.send(ctx), docs },
    { ...base, path: '/console/:file', handler: (ctx) => files.send(ctx, ctx.param('file')), docs },
  ]
}
