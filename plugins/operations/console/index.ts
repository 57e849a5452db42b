/** The console plugin: the pages for operators at /console, and their sessions. */
import { hostname } from 'node:os'
import {
  Auth,
  adminErrorFormat,
  definePlugin,
  type Host,
  Mesh,
  type MeshService,
  type RouteDefinition,
  Sessions,
  TrafficWatch,
} from '#kernel'
import { AppFiles } from './app-files.ts'
import { consoleConfig } from './config.ts'
import { handleLiveCommands, LiveStreams, PointsTopic } from './live/live-route.ts'
import { countWorkers, Sampler } from './live/sampler.ts'
import { handleSessionCommands, sessionRoutes } from './session-routes.ts'
import { SessionKeeper, SessionReplica } from './session-state.ts'
import { ConsoleSessions } from './sessions.ts'
import { SignInLimit } from './sign-in-limit.ts'

export default definePlugin({
  manifest: {
    name: 'console',
    version: '0.1.0',
    description: 'Pages for operators at /console, with sign-in by a control-plane key or token.',
    provides: [Sessions],
    usesOptionally: [Auth, Mesh, TrafficWatch],
    config: consoleConfig,
  },
  register(host, config) {
    const state = host.replica(SessionReplica)
    const keeper = host.isControl ? new SessionKeeper() : null
    const publish = async () => keeper && host.publish(SessionReplica, keeper.state)
    const sessions = new ConsoleSessions({
      auth: host.kernelConfig.auth === 'off' ? null : (host.find(Auth) ?? null),
      state: () => state.current,
      lifeSecs: config.sessionSecs,
      hasTls: () => host.kernelConfig.tls !== undefined,
    })
    host.provide(Sessions, sessions)
    const files = new AppFiles()
    for (const route of [...fileRoutes(files), ...sessionRoutes(host, sessions)]) host.route(route)
    const mesh = host.find(Mesh)
    handleSessionCommands(
      host,
      new SignInLimit(),
      async (session) => {
        keeper?.end(session)
        await publish()
      },
      () => mesh?.name ?? hostname(),
    )
    // Without metrics there is nothing to show.
    const streams = host.find(TrafficWatch) === undefined ? null : new LiveStreams(host, sessions)
    if (streams !== null) host.route(streams.route)
    const sampler = streams !== null && host.isControl ? openSampler(host, mesh) : null
    if (sampler !== null) handleLiveCommands(host, sampler)
    return {
      async start() {
        await publish()
        if (host.isData && !files.load()) host.log.warn({}, 'the pages of the console are not built')
      },
      ready: () => sampler?.start(),
      stop: () => {
        sampler?.stop()
        streams?.stop()
      },
    }
  },
})

function openSampler(host: Host, mesh: MeshService | undefined): Sampler {
  let serving: ReadonlySet<string> | null = null
  const isServing = (path: string) => {
    serving ??= new Set(
      host
        .routes()
        .filter(({ access }) => access === 'api')
        .map((route) => route.path),
    )
    return serving.has(path)
  }
  return new Sampler({
    read: (families) => host.readMetrics(families),
    isServing,
    workers: () => countWorkers(host),
    topic: host.topic(PointsTopic),
    channel: mesh?.isShared === true ? mesh.channel('console') : null,
    log: host.log,
  })
}

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
