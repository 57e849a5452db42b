/** What all plugins of one thread have declared; closed when registering ends. */
import type { Access } from '../contracts/auth.ts'
import type { HookName, HookOptions, HookSignatures, HookSwitch } from '../contracts/hook.ts'
import type { RouteDefinition } from '../contracts/route.ts'
import type { Method } from '../contracts/route-facts.ts'
import type { SocketRouteDefinition } from '../contracts/socket.ts'
import { BootError } from '../errors/boot-error.ts'
import { type DeclaredHook, declareHook } from './hooks.ts'

export interface DeclaredRoute {
  readonly plugin: string
  readonly definition: RouteDefinition
}

export interface DeclaredSocket {
  readonly plugin: string
  readonly definition: SocketRouteDefinition
}

/** Their keys are all that there are. */
const ACCESS: Readonly<Record<Access, true>> = { public: true, api: true, admin: true }
const METHODS: Readonly<Record<Method, true>> = {
  GET: true,
  POST: true,
  PUT: true,
  PATCH: true,
  DELETE: true,
}
const HOOKS: Readonly<Record<HookName, true>> = {
  onRequest: true,
  onPick: true,
  onGeneration: true,
  onUpstreamRequest: true,
  onAttempt: true,
  onResponse: true,
  onEvents: true,
  onChunk: true,
  onError: true,
  onDone: true,
}

export class Declarations {
  readonly routes: DeclaredRoute[] = []
  readonly sockets: DeclaredSocket[] = []
  readonly hooks: DeclaredHook[] = []
  readonly readinessChecks: (() => string | null)[] = []
  /** Called when a hook was switched; set by boot once routes are compiled. */
  onHooksChanged: () => void = () => {}
  #slots = 0
  #isClosed = false

  /** From now on nothing may be added. */
  close(): void {
    this.#isClosed = true
  }

  addRoute(plugin: string, definition: RouteDefinition): void {
    this.#assertOpen(plugin, 'a route')
    if (!Object.hasOwn(METHODS, definition.method)) {
      const names = Object.keys(METHODS).join(', ')
      throw new BootError(
        `plugin ${plugin} declares ${definition.method} ${definition.path}: method must be one of ${names}`,
      )
    }
    assertAccess(plugin, `${definition.method} ${definition.path}`, definition.access)
    const key = routeKey(definition)
    const other = this.routes.find((route) => routeKey(route.definition) === key)
    if (other !== undefined) {
      throw new BootError(
        `plugins ${other.plugin} and ${plugin} both declare ${definition.method} ${definition.path}`,
      )
    }
    assertStarIsLast(plugin, definition.path)
    this.routes.push({ plugin, definition })
  }

  addSocket(plugin: string, definition: SocketRouteDefinition): void {
    this.#assertOpen(plugin, 'a socket route')
    assertAccess(plugin, `the socket route ${definition.path}`, definition.access)
    const key = patternOf(definition.path)
    const other = this.sockets.find((socket) => patternOf(socket.definition.path) === key)
    if (other !== undefined) {
      throw new BootError(
        `plugins ${other.plugin} and ${plugin} both declare a socket route ${definition.path}`,
      )
    }
    assertStarIsLast(plugin, definition.path)
    this.sockets.push({ plugin, definition })
  }

  addHook<Name extends HookName>(
    plugin: string,
    name: Name,
    hook: HookSignatures[Name],
    options: HookOptions,
  ): HookSwitch {
    this.#assertOpen(plugin, 'a hook')
    if (!Object.hasOwn(HOOKS, name))
      throw new BootError(
        `plugin ${plugin} declares the hook ${name}, which does not exist; there are ${Object.keys(HOOKS).join(', ')}`,
      )
    const declared = declareHook(plugin, name, hook, options)
    this.hooks.push(declared)
    return {
      update: (change) => {
        Object.assign(declared, change)
        this.onHooksChanged()
      },
    }
  }

  addSlot(plugin: string): number {
    this.#assertOpen(plugin, 'a request slot')
    return this.#slots++
  }

  #assertOpen(plugin: string, what: string): void {
    if (this.#isClosed) throw new BootError(`plugin ${plugin} may declare ${what} only in register`)
  }
}

/** Authors who write JavaScript have nobody else who tells them. */
function assertAccess(plugin: string, what: string, access: unknown): void {
  if (typeof access === 'string' && Object.hasOwn(ACCESS, access)) return
  const names = Object.keys(ACCESS).join(', ')
  throw new BootError(
    `plugin ${plugin} declares ${what} without saying who may call it: access must be one of ${names}`,
  )
}

function routeKey({ method, path }: RouteDefinition): string {
  return `${method} ${patternOf(path)}`
}

/** Two paths of one pattern match the same requests, whatever their parameters are called. */
function patternOf(path: string): string {
  return path.replace(/:[^/]+/g, ':')
}

function assertStarIsLast(plugin: string, path: string): void {
  const star = path.indexOf('*')
  if (star >= 0 && !(star === path.length - 1 && path.endsWith('/*')))
    throw new BootError(
      `plugin ${plugin} declares ${path}: a star stands for the last segments only, as in /files/*`,
    )
}
