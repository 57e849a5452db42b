/** The registered modules of a data thread: a chain per attach point with what it needs, and the requests that reach each. */
import { hash } from 'node:crypto'
import type { GuardedCall, RequestContext } from '#kernel'
import { ATTACH_POINTS, type AttachPoint } from '../../../wasm-sdk/abi.ts'
import type { LoadedModule, Matcher, ModuleSet } from '../threads/guest-task.ts'
import type { ModuleDescriptor } from '../wire.ts'

export interface Chain {
  /** In order of registration. */
  readonly modules: readonly LoadedModule[]
  /** Some modules have conditions. */
  readonly isSelective: boolean
  readonly needsClientAddress: boolean
  readonly needsRequestHeaders: boolean
  readonly needsRequestBody: boolean
  readonly needsResponseHeaders: boolean
  readonly needsResponseBody: boolean
}

export class ActiveModules {
  #chains = toChains([])
  #modules: readonly LoadedModule[] = []

  update({ modules }: ModuleSet): void {
    this.#modules = modules
    this.#chains = toChains(modules)
  }

  get all(): readonly LoadedModule[] {
    return this.#modules
  }

  chain(point: AttachPoint): Chain {
    return this.#chains[point]
  }
}

function toChains(modules: readonly LoadedModule[]): Readonly<Record<AttachPoint, Chain>> {
  const entries = ATTACH_POINTS.map((point) => [
    point,
    toChain(modules.filter(({ attachPoints }) => attachPoints.includes(point))),
  ])
  return Object.fromEntries(entries)
}

function toChain(modules: readonly LoadedModule[]): Chain {
  return {
    modules,
    isSelective: modules.some(({ match }) => Object.keys(match).length > 0),
    needsClientAddress: modules.some(({ needs }) => needs.client_ip),
    needsRequestHeaders: modules.some(
      ({ needs, match }) => isAny(needs.headers) || match.headers !== undefined,
    ),
    needsRequestBody: modules.some(({ needs }) => needs.request_body),
    needsResponseHeaders: modules.some(({ needs }) => isAny(needs.response_headers)),
    needsResponseBody: modules.some(({ needs }) => needs.response_body),
  }
}

function isAny(needs: boolean | readonly string[]): boolean {
  return needs === true || (Array.isArray(needs) && needs.length > 0)
}

/** Range of the hash that selects a share. */
const PARTS = 0x1_0000_0000

/** @param isRefused the access check rejected the request: only modules registered with `on: refused` see it */
export function selectModules(
  { modules, isSelective }: Chain,
  ctx: RequestContext,
  isRefused = false,
): readonly LoadedModule[] {
  if (!isSelective && !isRefused) return modules
  return modules.filter(({ match, seesRefused }) => (!isRefused || seesRefused) && matches(match, ctx))
}

/** Tool calls have a tenant, a model and a request id; registration rejects other conditions. */
export function selectForTool(
  { modules, isSelective }: Chain,
  { tenant, model, requestId }: GuardedCall,
): readonly LoadedModule[] {
  if (!isSelective) return modules
  return modules.filter(({ match: { tenants, models, share, isInverse } }) => {
    if (tenants !== undefined && !tenants.includes(tenant)) return false
    if (!fitsAny(models, model)) return false
    return share === undefined || placeOf(requestId) < share !== (isInverse === true)
  })
}

/** Conditions that an attach point can evaluate; absent: all. With any other the module would silently not run. */
const CONDITIONS: Partial<Record<AttachPoint, readonly string[]>> = {
  OnPick: ['models'],
  OnToolCall: ['models', 'tenants', 'share'],
}

/** Conditions of a module that one of its attach points cannot evaluate, with a text that says what fits. */
export function* matchProblems({
  name,
  match = {},
  attach_points,
}: ModuleDescriptor): Generator<{ member: string; text: string }> {
  for (const { Middleware: point } of attach_points) {
    const fitting = CONDITIONS[point]
    for (const member of Object.keys(match))
      if (fitting?.includes(member) === false) {
        const text = `is not available for ${point}, an attach point of the module ${name}: its match may have ${fitting.join(', ')}`
        yield { member, text }
      }
  }
}

/** The first module that matches the model, the only condition of OnPick. */
export function moduleForModel(modules: readonly LoadedModule[], model: string): LoadedModule | null {
  for (const module of modules) if (fitsAny(module.match.models, model)) return module
  return null
}

/** False if no request of the route can reach the module. */
export function mayMatch({ match: { routes } }: LoadedModule, { path }: { readonly path: string }): boolean {
  return fitsAny(routes, path)
}

function matches(
  { routes, models, tenants, headers, share, isInverse }: Matcher,
  ctx: RequestContext,
): boolean {
  if (!fitsAny(routes, ctx.route.path)) return false
  if (tenants !== undefined && !tenants.includes(ctx.identity?.tenant ?? 'anonymous')) return false
  if (models !== undefined && !isModel(models, ctx)) return false
  for (const name in headers) if (!hasHeader(ctx.requestHeaders, name, headers[name])) return false
  return share === undefined || placeOf(ctx.requestId) < share !== (isInverse === true)
}

/** Absent patterns match everything, also what is unknown. */
function fitsAny(patterns: readonly string[] | undefined, text: string | null): boolean {
  if (patterns === undefined) return true
  for (const pattern of patterns) if (text !== null && fits(pattern, text)) return true
  return false
}

/** A trailing * matches any suffix. */
export function fits(pattern: string, text: string): boolean {
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : text === pattern
}

function isModel(models: readonly string[], ctx: RequestContext): boolean {
  try {
    return fitsAny(models, ctx.peek().model)
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
