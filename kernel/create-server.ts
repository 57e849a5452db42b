/** Builds the HTTP server of a data thread from the configuration and the declarations of its plugins. */
import type { KernelConfig } from './config/kernel-config.ts'
import type { AuthService, SessionService } from './contracts/auth.ts'
import type { Logger } from './contracts/log.ts'
import type { ClientAddressing } from './contracts/request-facts.ts'
import type { TrafficWatch } from './contracts/traffic.ts'
import {
  type CompiledRoute,
  type CompiledSocket,
  compileRoute,
  compileSocket,
  messageRoute,
  unmatchedRoute,
  upgradeHooks,
} from './http/compiled-route.ts'
import { connectionsPerThread } from './http/connection-limit.ts'
import { serverLimits } from './http/listener.ts'
import { headerRules } from './http/request-headers.ts'
import { HttpServer, type HttpServerOptions } from './http/server.ts'
import { toTlsFiles } from './http/tls-files.ts'
import { accessLog } from './observe/access-log.ts'
import type { ThreadMetrics } from './observe/metrics.ts'
import type { Declarations } from './plugin/declarations.ts'
import { compileHooks } from './plugin/hooks.ts'

export interface CreateServerOptions {
  readonly kernel: KernelConfig
  readonly threadIndex: number
  readonly declarations: Declarations
  readonly disabledRoutes: HttpServerOptions['disabledRoutes']
  /** Null serves every route without a check. */
  readonly auth: AuthService | null
  readonly sessions: SessionService | null
  readonly clients: ClientAddressing | null
  readonly traffic: TrafficWatch | null
  /** Request headers that policies read. */
  readonly policyHeaders: readonly string[]
  readonly metrics: ThreadMetrics
  readonly log: Logger
}

export function createServer(options: CreateServerOptions): HttpServer {
  const { kernel, declarations, auth, clients, traffic, metrics, log } = options
  const { http } = kernel
  const routes = declarations.routes.map(({ plugin, definition }) =>
    compileRoute(definition, {
      hooks: compileHooks(declarations.hooks, plugin, definition),
      auth,
      metrics: traffic?.route(definition.method, definition.path) ?? null,
    }),
  )
  const sockets = declarations.sockets.map(({ plugin, definition }) =>
    compileSocket(definition, {
      hooks: compileHooks(declarations.hooks, plugin, messageRoute(definition)),
      auth,
      metrics: traffic && {
        upgrade: traffic.route('GET', definition.path),
        message: traffic.route('MESSAGE', definition.path),
      },
    }),
  )
  declarations.onHooksChanged = () => recompileHooks(declarations, routes, sockets)
  const paused = metrics
    .gauge({
      name: 'weir_accept_paused',
      help: 'Threads that refuse connections because of kernel.http.maxConnections.',
    })
    .labels()
  const server = new HttpServer({
    routes,
    sockets,
    sessions: options.sessions,
    clients,
    detachedMetrics: (path) => traffic?.route('DETACHED', path) ?? null,
    disabledRoutes: options.disabledRoutes,
    unmatched: unmatchedRoute(traffic?.route('OTHER', null) ?? null),
    headerRules: headerRules({
      declared: [
        ...options.policyHeaders,
        ...declarations.routes.flatMap((route) => route.definition.headers ?? []),
        ...declarations.sockets.flatMap((socket) => socket.definition.headers ?? []),
        ...declarations.hooks.flatMap((hook) => hook.options.headers ?? []),
        ...(clients === null ? [] : [clients.header]),
      ],
      forwarded: kernel.upstream.forwardHeaders,
      requestIdHeaders: http.requestIdHeaders,
      maxCount: http.maxHeaderCount,
      maxBytes: http.maxHeaderBytes,
    }),
    ...serverLimits(http),
    connections: {
      max: connectionsPerThread(http.maxConnections, kernel.threads),
      log,
      onChange: (isPaused) => {
        paused.value = isPaused ? 1 : 0
      },
    },
    tls: kernel.tls === undefined ? null : toTlsFiles(kernel.tls),
    log,
    access: accessLog(kernel.log, options.threadIndex, metrics),
  })
  traffic?.serving({
    openRequestTimesMs: () => Array.from(server.openRequests, (ctx) => ctx.startedAtMs),
    openSockets: sockets.length === 0 ? null : () => server.openSockets,
  })
  return server
}

/** Applies a hook that was switched on or off on this thread. */
function recompileHooks(
  declarations: Declarations,
  routes: readonly CompiledRoute[],
  sockets: readonly CompiledSocket[],
): void {
  declarations.sockets.forEach(({ plugin, definition }, index) => {
    const hooks = compileHooks(declarations.hooks, plugin, messageRoute(definition))
    sockets[index].message.hooks = hooks
    sockets[index].upgrade.hooks = upgradeHooks(hooks)
  })
  declarations.routes.forEach(({ plugin, definition }, index) => {
    routes[index].hooks = compileHooks(declarations.hooks, plugin, definition)
  })
}
