/** Makes the compiled form of routes: those of plugins, and the one that answers unknown paths. */
import type { AuthService } from '../contracts/auth.ts'
import type { RouteHooks } from '../contracts/hook.ts'
import type { RouteDefinition } from '../contracts/route.ts'
import type { RouteWatch } from '../contracts/traffic.ts'
import { apiErrorFormat } from '../errors/error-formats.ts'
import { type CompiledRoute, NO_HOOKS } from './compiled-route.ts'

const DEFAULT_ID_PREFIX = 'req-'

export interface RouteParts {
  readonly hooks: RouteHooks
  /** Ignored for public routes. */
  readonly auth: AuthService | null
  readonly metrics: RouteWatch | null
}

export function compileRoute(definition: RouteDefinition, parts: RouteParts): CompiledRoute {
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

/** Answers paths that no route has; every path looks the same in metrics. */
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
