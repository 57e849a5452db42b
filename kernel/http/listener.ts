/** Opens a separate listener for a plugin. */
import type { KernelConfig } from '../config/kernel-config.ts'
import type { Logger } from '../contracts/log.ts'
import type { RouteDefinition } from '../contracts/request.ts'
import { compileRoute, NO_HOOKS, unmatchedRoute } from './compiled-route.ts'
import { createCors } from './cors.ts'
import { headerRules } from './request-headers.ts'
import { HttpServer } from './server.ts'

/** Limits and timeouts that all listeners share. */
export function serverLimits(http: KernelConfig['http']) {
  return {
    body: {
      maxBodyBytes: http.maxBodyBytes,
      maxHeldBytes: http.maxHeldBodyBytes,
      maxHeldBytesPerOwner: http.maxHeldBodyBytesPerTenant,
    },
    maxJsonDepth: http.maxJsonDepth,
    client: {
      bodyIdleMs: http.bodyIdleMs,
      bodyMinRate: http.bodyMinBytesPerSecond,
      replyIdleMs: http.replyIdleMs,
    },
    heartbeatMs: http.heartbeatMs,
    keepAlive: http.keepAlive,
    cors: createCors(http.corsOrigins),
  }
}

/** A separate HTTP listener of a plugin, such as that of the simulated engine. */
export interface ListenerOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Routes with `access: 'public'` only. */
  readonly routes: readonly RouteDefinition[]
  /** True if only one thread listens on the port. */
  readonly isAlone?: boolean
}

/** @throws when a route is not public (this listener checks no keys) or the address is not available */
export async function openListener(
  options: ListenerOptions,
  http: KernelConfig['http'],
  log: Logger,
): Promise<{ server: HttpServer; port: number }> {
  for (const route of options.routes) {
    if (route.access !== 'public')
      throw new Error(`${route.path} is not public; only public routes may have a listener of their own`)
  }
  const server = new HttpServer({
    routes: options.routes.map((route) =>
      compileRoute(route, { hooks: NO_HOOKS, auth: null, metrics: null }),
    ),
    unmatched: unmatchedRoute(null),
    headerRules: headerRules({
      declared: options.routes.flatMap((route) => route.headers ?? []),
      forwarded: [],
      requestIdHeaders: http.requestIdHeaders,
      maxCount: http.maxHeaderCount,
      maxBytes: http.maxHeaderBytes,
    }),
    ...serverLimits(http),
    log,
    access: null,
  })
  try {
    const port = await server.listen(options.host, options.port, options.isAlone)
    return { server, port }
  } catch (error) {
    server.close()
    throw error
  }
}
