/** Which requests a module is for: routes, models, tenants, headers, a share of all. */
import { hash } from 'node:crypto'
import type { GuardedCall, RequestContext } from '#kernel'
import type { LoadedModule, Matcher } from '../threads/guest-task.ts'

/** A share is counted in parts of so many. */
const PARTS = 0x1_0000_0000

/** @param isRefused the access check refused the caller: only modules that ask for it see such a request */
export function selectModules(
  modules: readonly LoadedModule[],
  isSelective: boolean,
  ctx: RequestContext,
  isRefused = false,
): readonly LoadedModule[] {
  if (!isSelective && !isRefused) return modules
  return modules.filter(({ match, seesRefused }) => (!isRefused || seesRefused) && matches(match, ctx))
}

/** Of the call of a tool tenant, model and the id of the request are known: registration refuses what asks for more. */
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

/** The first one that is for the model; of a choice of a worker nothing else is known. */
export function moduleForModel(modules: readonly LoadedModule[], model: string): LoadedModule | null {
  for (const module of modules) {
    const { models } = module.match
    if (models === undefined || models.some((pattern) => fits(pattern, model))) return module
  }
  return null
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

/** A star at the end stands for whatever follows. */
function fits(pattern: string, text: string): boolean {
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : text === pattern
}

function isModel(models: readonly string[], ctx: RequestContext): boolean {
  try {
    const { model } = ctx.peek()
    return model !== null && models.some((pattern) => fits(pattern, model))
  } catch {
    // No body that names a model: the handler will say so.
    return false
  }
}

function hasHeader(headers: readonly string[], name: string, pattern: string): boolean {
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i] === name && fits(pattern, headers[i + 1])) return true
  return false
}

/** The same request always has the same place, 0 to 1, whatever the thread. */
function placeOf(requestId: string): number {
  return Number.parseInt(hash('sha256', requestId).slice(0, 8), 16) / PARTS
}
