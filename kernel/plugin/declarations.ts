/** What all plugins of one thread have declared; closed when registering ends. */
import type { HookName, HookOptions, HookSignatures, HookSwitch } from '../contracts/hook.ts'
import type { RouteDefinition } from '../contracts/route.ts'
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
