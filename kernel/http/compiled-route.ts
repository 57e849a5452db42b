/** Routes with hook chains, access check and metrics resolved at boot. */
import type { AuthService } from '../contracts/auth.ts'
import type { RouteHooks } from '../contracts/hook.ts'
import type { RouteDefinition } from '../contracts/route.ts'
import type { RouteWatch } from '../contracts/traffic.ts'
import { apiErrorFormat } from '../errors/error-formats.ts'

const DEFAULT_ID_PREFIX = 'req-'

export interface CompiledRoute {
  readonly definition: RouteDefinition
  readonly paramNames: readonly string[]
  readonly readsBody: boolean
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
  onAttempt: null,
  onEvents: null,
  onUpstreamRequest: null,
  onResponse: null,
  onChunk: null,
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
  return {
    definition,
    paramNames: path.split('/').flatMap((segment) => paramNameOf(segment)),
    readsBody: definition.readsBody ?? (method === 'POST' || method === 'PUT' || method === 'PATCH'),
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
