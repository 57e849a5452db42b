/** A route with everything decided at ready: its hook chains, its access check, its metrics. */
import type { AuthService } from '../contracts/auth.ts'
import type { RouteHooks } from '../contracts/hook.ts'
import type { RouteDefinition } from '../contracts/route.ts'
import type { RouteWatch } from '../contracts/traffic.ts'

export interface CompiledRoute {
  readonly definition: RouteDefinition
  readonly paramNames: readonly string[]
  readonly readsBody: boolean
  readonly requestIdPrefix: string
  /** Put anew when a hook is switched; requests keep those they began with. */
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
  onAttempt: null,
  onEvents: null,
  onUpstreamRequest: null,
  onResponse: null,
  onChunk: null,
  onError: null,
  onDone: null,
  maxReplyBytes: 0,
  readsAllHeaders: false,
})
