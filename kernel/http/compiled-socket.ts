/** A socket route resolved at boot: the upgrade request, and the route of its messages. */
import type { AuthService } from '../contracts/auth.ts'
import type { RouteHooks } from '../contracts/hook.ts'
import type { RouteDefinition } from '../contracts/route.ts'
import type { SocketRouteDefinition } from '../contracts/socket.ts'
import type { RouteWatch } from '../contracts/traffic.ts'
import type { CompiledRoute } from './compiled-route.ts'
import { compileRoute } from './compiled-route.ts'

export interface CompiledSocket {
  readonly definition: SocketRouteDefinition
  /** The server sets its handler. */
  readonly upgrade: CompiledRoute
  readonly message: CompiledRoute
}

export interface SocketParts {
  readonly hooks: RouteHooks
  readonly auth: AuthService | null
  /** Null when metrics are off. */
  readonly metrics: { readonly upgrade: RouteWatch; readonly message: RouteWatch } | null
}

/** A message as a route for hooks: it has a body, like a POST. */
export function messageRoute(definition: SocketRouteDefinition): RouteDefinition {
  const { path, access, errors, headers, endpoint, requestIdPrefix } = definition
  return {
    method: 'POST',
    path,
    access,
    errors,
    headers,
    endpoint,
    requestIdPrefix,
    docs: { summary: 'a message of a socket', tag: 'sockets', isHidden: true, responses: {} },
    // Each message has its own handler.
    handler: () => {},
  }
}

export function compileSocket(definition: SocketRouteDefinition, parts: SocketParts): CompiledSocket {
  const { hooks, auth, metrics } = parts
  const route = messageRoute(definition)
  return {
    definition,
    upgrade: compileRoute(
      { ...route, method: 'GET', readsBody: false },
      { hooks: upgradeHooks(hooks), auth, metrics: metrics?.upgrade ?? null },
    ),
    message: compileRoute(route, { hooks, auth: null, metrics: metrics?.message ?? null }),
  }
}

/** The route of the upgrade for a server. Its hooks are read per request, because they may be switched. */
export function upgradeRoute({ upgrade }: CompiledSocket, accept: RouteDefinition['handler']): CompiledRoute {
  return {
    ...upgrade,
    definition: { ...upgrade.definition, handler: accept },
    get hooks() {
      return upgrade.hooks
    },
  }
}

/** `onRequest` runs for each message instead of the upgrade; the other hooks run for both. */
export function upgradeHooks(hooks: RouteHooks): RouteHooks {
  return { ...hooks, onRequest: null }
}
