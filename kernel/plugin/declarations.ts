/** What all plugins of one thread have declared; closed when registering ends. */
import type { HookName, HookOptions, HookSignatures, HookSwitch } from '../contracts/hook.ts'
import type { RouteDefinition } from '../contracts/route.ts'
import { type DeclaredHook, declareHook } from './hooks.ts'
import { BootError } from './plugin-errors.ts'

export interface DeclaredRoute {
  readonly plugin: string
  readonly definition: RouteDefinition
}

export class Declarations {
  readonly routes: DeclaredRoute[] = []
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
    this.routes.push({ plugin, definition })
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
  return `${method} ${path.replace(/:[^/]+/g, ':')}`
}
