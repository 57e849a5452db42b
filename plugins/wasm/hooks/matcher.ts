/** Evaluates the conditions of modules: routes, models, tenants, headers, share. */
import { hash } from 'node:crypto'
import type { GuardedCall, RequestContext } from '#kernel'
import type { LoadedModule, Matcher } from '../threads/guest-task.ts'

/** Range of the hash that selects a share. */
const PARTS = 0x1_0000_0000

/** @param isRefused the access check rejected the request: only modules registered with `on: refused` see it */
export function selectModules(
  modules: readonly LoadedModule[],
  isSelective: boolean,
  ctx: RequestContext,
  isRefused = false,
): readonly LoadedModule[] {
  if (!isSelective && !isRefused) return modules
  return modules.filter(({ match, seesRefused }) => (!isRefused || seesRefused) && matches(match, ctx))
}

/** Tool calls have a tenant, a model and a request id; registration rejects other conditions. */
export function selectForTool(
  modules: readonly LoadedModule[],
  isSelective: boolean,
  { tenant, model, requestId }: GuardedCall,
): readonly LoadedModule[] {
  if (!isSelective) return modules
  return modules.filter(({ match: { tenants, models, share, isInverse } }) => {
    if (tenants !== undefined && !tenants.includes(tenant)) return false
    if (models !== undefined && !(model !== null && models.some((pattern) => fits(pattern, model))))
      return false
    return share === undefined || placeOf(requestId) < share !== (isInverse === true)
  })
}

/** The first module that matches the model, the only condition of OnPick. */
export function moduleForModel(modules: readonly LoadedModule[], model: string): LoadedModule | null {
  for (const module of modules) {
    const { models } = module.match
    if (models === undefined || models.some((pattern) => fits(pattern, model))) return module
  }
  return null
}

/** False if no request of the route can reach the module. */
export function mayMatch({ match: { routes } }: LoadedModule, { path }: { readonly path: string }): boolean {
  return routes === undefined || routes.some((pattern) => fits(pattern, path))
}

export function isSelective({ match }: LoadedModule): boolean {
  return Object.keys(match).length > 0
}

function matches(
  { routes, models, tenants, headers, share, isInverse }: Matcher,
  ctx: RequestContext,
): boolean {
  if (routes !== undefined && !routes.some((route) => fits(route, ctx.route.path))) return false
  if (tenants !== undefined && !tenants.includes(ctx.identity?.tenant ?? 'anonymous')) return false
  if (models !== undefined && !isModel(models, ctx)) return false
  for (const name in headers) if (!hasHeader(ctx.requestHeaders, name, headers[name])) return false
  return share === undefined || placeOf(ctx.requestId) < share !== (isInverse === true)
}

/** A trailing * matches any suffix. */
function fits(pattern: string, text: string): boolean {
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : text === pattern
}

function isModel(models: readonly string[], ctx: RequestContext): boolean {
  try {
    const { model } = ctx.peek()
    return model !== null && models.some((pattern) => fits(pattern, model))
  } catch {
    // The handler reports an invalid body.
    return false
  }
}

function hasHeader(headers: readonly string[], name: string, pattern: string): boolean {
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i] === name && fits(pattern, headers[i + 1])) return true
  return false
}

/** Position of a request in 0 to 1, the same on all threads. */
function placeOf(requestId: string): number {
  return Number.parseInt(hash('sha256', requestId).slice(0, 8), 16) / PARTS
}
