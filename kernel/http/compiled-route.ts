/** Routes and socket routes with hook chains, access check and metrics resolved at boot. */
import type { AuthService } from '../contracts/auth.ts'
import type { RouteHooks } from '../contracts/hook.ts'
import type { RouteDefinition } from '../contracts/request.ts'
import type { SocketRouteDefinition } from '../contracts/socket.ts'
import type { RouteWatch } from '../contracts/traffic.ts'
import { apiErrorFormat } from '../errors/error-formats.ts'
import { type QueryCheck, queryCheck } from './query-check.ts'

const DEFAULT_ID_PREFIX = 'req-'

export interface CompiledRoute {
  readonly definition: RouteDefinition
  readonly paramNames: readonly string[]
  /** Path of every request that matches the route; null if it has parameters. The library compares byte by byte. */
  readonly fixedPath: string | null
  readonly readsBody: boolean
  /** Null if the route documents no query. */
  readonly checkQuery: QueryCheck | null
  readonly requestIdPrefix: string
  /** Replaced when a hook is switched; running requests keep theirs. */
  hooks: RouteHooks
  /** Null where no check is needed: public routes, and all routes when auth is off. */
  readonly auth: AuthService | null
  /** Null when metrics are off. */
  readonly metrics: RouteWatch | null
}

export const NO_HOOKS: RouteHooks = Object.freeze({
  onRequest: null,
  onPick: null,
  onGeneration: null,
  onText: null,
  onPromptText: null,
  onAttempt: null,
  onEvents: null,
  onUpstreamRequest: null,
  onResponse: null,
  onError: null,
  onDone: null,
  maxResponseBytes: 0,
  readsAllHeaders: false,
  needsGenerations: false,
})

/** @param parts its `auth` is ignored for public routes */
export function compileRoute(
  definition: RouteDefinition,
  parts: Pick<CompiledRoute, 'hooks' | 'auth' | 'metrics'>,
): CompiledRoute {
  const { method, path, access } = definition
  const paramNames = path.split('/').flatMap((segment) => paramNameOf(segment))
  return {
    definition,
    paramNames,
    fixedPath: paramNames.length === 0 ? path : null,
    readsBody: definition.readsBody ?? (method === 'POST' || method === 'PUT' || method === 'PATCH'),
    checkQuery: queryCheck(definition.docs.query),
    requestIdPrefix: definition.requestIdPrefix ?? DEFAULT_ID_PREFIX,
    hooks: parts.hooks,
    auth: access === 'public' ? null : parts.auth,
    metrics: parts.metrics,
  }
}

function paramNameOf(segment: string): string[] {
  if (segment.startsWith(':')) return [segment.slice(1)]
  return segment === '*' ? ['*'] : []
}

/** Responds to unknown paths, which share one metrics label. */
export function unmatchedRoute(metrics: RouteWatch | null): CompiledRoute {
  return compileRoute(
    {
      method: 'GET',
      path: '/*',
      access: 'public',
      errors: apiErrorFormat,
      handler: () => {},
      docs: { summary: 'unknown path', tag: 'none', responses: {} },
    },
    { hooks: NO_HOOKS, auth: null, metrics },
  )
}

/**
 * Part of a path that matches the `*` of a route.
 *
 * @param pattern of the route; ends with a slash and a star
 * @returns percent-encoded as received, without the slash
 */
export function wildcardRest(path: string, pattern: string): string {
  let at = -1
  for (let slash = pattern.indexOf('/'); slash >= 0; slash = pattern.indexOf('/', slash + 1)) {
    at = path.indexOf('/', at + 1)
    if (at < 0) return ''
  }
  return path.slice(at + 1)
}

/** The upgrade request of a socket route, and the route of its messages. */
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
