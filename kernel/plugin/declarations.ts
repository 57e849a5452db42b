/**
 * Routes, hooks and slots that the plugins of one thread declare in `register`, and the mistakes in them.
 */
import type { Access } from '../contracts/auth.ts'
import type { ErrorFormat } from '../contracts/error-format.ts'
import type { HookName, HookOptions, HookSignatures, HookSwitch } from '../contracts/hook.ts'
import type { RouteDefinition } from '../contracts/request.ts'
import type { Method } from '../contracts/route.ts'
import type { SocketRouteDefinition } from '../contracts/socket.ts'
import { BootError } from '../errors/boot-error.ts'
import { messageOf } from '../errors/message-of.ts'
import { type DeclaredHook, declareHook } from './hooks.ts'

/** A route or socket route, and the plugin that declares it. */
export interface Declared<Definition> {
  readonly plugin: string
  readonly definition: Definition
}

// The types make these tables complete.
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
  onText: true,
  onPromptText: true,
  onUpstreamRequest: true,
  onAttempt: true,
  onResponse: true,
  onEvents: true,
  onError: true,
  onDone: true,
}

/** Collects invalid declarations as mistakes instead of throwing, so that a failed boot lists all of them. */
export class Declarations {
  readonly routes: Declared<RouteDefinition>[] = []
  readonly sockets: Declared<SocketRouteDefinition>[] = []
  readonly hooks: DeclaredHook[] = []
  readonly mistakes: PluginMistake[] = []
  /** Called when a hook is switched; set when routes are compiled. */
  onHooksChanged: () => void = () => {}
  #slots = 0
  #isClosed = false

  /** Ends registration. */
  close(): void {
    this.#isClosed = true
  }

  addRoute(plugin: string, definition: RouteDefinition): void {
    this.#assertOpen(plugin, 'a route')
    const { method, path } = definition
    const isSame = (other: RouteDefinition) =>
      other.method === method && patternOf(other.path) === patternOf(path)
    const mistake = methodMistake(method, path)
    if (mistake !== undefined) this.#refuse(plugin, mistake)
    else this.#add(this.routes, { plugin, definition }, `${method} ${path}`, isSame)
  }

  addSocket(plugin: string, definition: SocketRouteDefinition): void {
    this.#assertOpen(plugin, 'a socket route')
    const { path } = definition
    const isSame = (other: SocketRouteDefinition) => patternOf(other.path) === patternOf(path)
    this.#add(this.sockets, { plugin, definition }, `the socket route ${path}`, isSame)
  }

  #add<Definition extends Facts>(
    list: Declared<Definition>[],
    added: Declared<Definition>,
    what: string,
    isSame: (other: Definition) => boolean,
  ): void {
    const other = list.find(({ definition }) => isSame(definition))
    const mistake =
      factsMistake(what, added.definition) ??
      (other && `declares ${what}, which plugin ${other.plugin} declares too`)
    if (mistake === undefined) list.push(added)
    else this.#refuse(added.plugin, mistake)
  }

  addHook<Name extends HookName>(
    plugin: string,
    name: Name,
    hook: HookSignatures[Name],
    options: HookOptions,
  ): HookSwitch {
    this.#assertOpen(plugin, 'a hook')
    if (!Object.hasOwn(HOOKS, name)) {
      const names = Object.keys(HOOKS).join(', ')
      this.#refuse(plugin, `declares the hook ${name}, which does not exist; there are ${names}`)
      return { update: () => {} }
    }
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

  #refuse(plugin: string, mistake: string): void {
    this.mistakes.push({ plugin, text: `plugin ${plugin} ${mistake}` })
  }

  #assertOpen(plugin: string, what: string): void {
    if (this.#isClosed) throw new BootError(`plugin ${plugin} may declare ${what} only in register`)
  }
}

function methodMistake(method: string, path: string): string | undefined {
  if (Object.hasOwn(METHODS, method)) return undefined
  return `declares ${method} ${path}: method must be one of ${Object.keys(METHODS).join(', ')}`
}

type Facts = Pick<RouteDefinition, 'access' | 'path'> & { readonly errors?: Partial<ErrorFormat> }

/** Checked at run time for plugins in plain JavaScript. */
function factsMistake(what: string, { access, path, errors }: Facts): string | undefined {
  if (typeof access !== 'string' || !Object.hasOwn(ACCESS, access))
    return `declares ${what} without access: it must be one of ${Object.keys(ACCESS).join(', ')}`
  const star = path.indexOf('*')
  if (star >= 0 && (star < path.length - 1 || !path.endsWith('/*')))
    return `declares ${path}: a star must be the last segment, as in /files/*`
  if (typeof errors?.body !== 'function' || typeof errors.lastEvents !== 'function')
    return `declares ${what}: errors must be an error format, such as apiErrorFormat`
  return undefined
}

/** Two paths of one pattern match the same requests, whatever their parameters are called. */
function patternOf(path: string): string {
  return path.replace(/:[^/]+/g, ':')
}

interface PluginMistake {
  readonly plugin: string
  /** A sentence that names the plugin. */
  readonly text: string
}

/** All problems found while the plugins of one thread register; its message has a line for each. */
export class PluginMistakes extends BootError {
  readonly mistakes: readonly PluginMistake[]

  constructor(mistakes: readonly PluginMistake[], cause?: unknown) {
    super(mistakes.map(({ text }) => text).join('\n'), cause)
    this.mistakes = mistakes
  }
}

export function pluginFailure(plugin: string, step: string, cause: unknown): BootError {
  return new BootError(`plugin ${plugin} failed in ${step}: ${messageOf(cause)}`, cause)
}
