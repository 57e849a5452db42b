/** The tools of a turn as the model is offered them, and the way back from a name to who runs it. */
import type { BuiltInType, CalledTool, CallOrigin, ChatTool, ToolReference } from '#kernel'
import type { ServerTool } from '../connection/read-tools.ts'
import { exposeNames, type NameWish } from '../tools/exposed-names.ts'
import type { OpenServer } from '../tools/open-server.ts'
import { needsApproval } from '../tools/tool-filter.ts'
import { builtInFunction } from './built-in-functions.ts'

/** A tool that the gateway runs. */
export interface OfferedTool {
  readonly exposedName: string
  readonly called: CalledTool
  readonly server: OpenServer
  readonly tool: ServerTool
  readonly needsApproval: boolean
  /** Clients see neither the tool nor its calls. */
  readonly isHidden: boolean
}

export interface ServerWithTools {
  readonly server: OpenServer
  readonly tools: readonly ServerTool[]
}

export class OfferedTools {
  /** The client's own functions first, in its order, then the servers' in theirs. */
  readonly functions: readonly ChatTool[]
  readonly #functionNames: ReadonlySet<string>
  readonly #byName = new Map<string, OfferedTool>()
  readonly #byOrigin = new Map<string, OfferedTool>()

  /** @param reserved names of tools that the model is offered by others */
  constructor(
    functions: readonly ChatTool[],
    servers: readonly ServerWithTools[],
    usualApproval: 'always' | 'never',
    reserved: Iterable<string> = [],
  ) {
    this.functions = functions
    this.#functionNames = new Set(functions.map((tool) => tool.function.name))
    const wishes: NameWish[] = []
    const found: Omit<OfferedTool, 'exposedName'>[] = []
    for (const { server, tools } of servers) {
      for (const tool of tools) {
        wishes.push(wishOf(server, tool))
        found.push(describe(server, tool, usualApproval))
      }
    }
    const taken = new Set(reserved)
    for (const name of this.#functionNames) taken.add(name)
    exposeNames(taken, wishes).forEach((exposedName, i) => {
      const tool = { ...found[i], exposedName }
      const origin = originKey(tool.called)
      this.#byName.set(exposedName, tool)
      if (!this.#byOrigin.has(origin)) this.#byOrigin.set(origin, tool)
    })
  }

  get hasGatewayTools(): boolean {
    return this.#byName.size > 0
  }

  /** True for functions of the client's own. */
  hasFunction(name: string): boolean {
    return this.#functionNames.has(name)
  }

  find(exposedName: string): OfferedTool | undefined {
    return this.#byName.get(exposedName)
  }

  /** The tool that made a call of an earlier turn, or that an approval is for; undefined when it is not here any more. */
  findOrigin(origin: CallOrigin): OfferedTool | undefined {
    return this.#byOrigin.get(originKey(origin))
  }

  /** Names under which the model sees what a choice names; empty when the turn has none of it. */
  namesOf(reference: ToolReference): string[] {
    if (reference.kind === 'function') return this.hasFunction(reference.name) ? [reference.name] : []
    if (reference.kind === 'mcp' && reference.label !== null && reference.name !== undefined) {
      const { label, name } = reference
      const found = this.findOrigin({ kind: 'mcp', label, name })
      return found === undefined ? [] : [found.exposedName]
    }
    return [...this.#byName.values()]
      .filter(({ called }) => matches(called, reference))
      .map((tool) => tool.exposedName)
  }

  /** As generation requests hold them. @param only these names; null: all */
  toChatTools(only: ReadonlySet<string> | null): ChatTool[] {
    const isWanted = (name: string) => only === null || only.has(name)
    const functions = this.functions.filter((tool) => isWanted(tool.function.name))
    const own = [...this.#byName.values()].filter(({ exposedName }) => isWanted(exposedName)).map(toChatTool)
    return [...functions, ...own]
  }
}

function wishOf(server: OpenServer, tool: ServerTool): NameWish {
  const { builtIn, label } = server.plan
  return builtIn === null ? { label, name: tool.name } : { label: null, name: builtIn.config.type }
}

function describe(
  server: OpenServer,
  tool: ServerTool,
  usualApproval: 'always' | 'never',
): Omit<OfferedTool, 'exposedName'> {
  const { builtIn, config, request, label, isHidden } = server.plan
  if (builtIn !== null) {
    const called = { kind: 'built_in', type: builtIn.config.type } as const
    // A built-in tool shows its calls, though its server shows nothing.
    return { called, server, tool, needsApproval: false, isHidden: false }
  }
  return {
    called: { kind: 'mcp', label, name: tool.name },
    server,
    tool,
    // Nobody could approve what nobody sees.
    needsApproval: !isHidden && needsApproval(tool, request?.approval, config?.approval ?? usualApproval),
    isHidden,
  }
}

function toChatTool({ exposedName, called, server, tool }: OfferedTool): ChatTool {
  if (called.kind === 'built_in') return builtInFunction(called.type, exposedName, tool)
  const about = server.plan.request?.description
  const parts = [about, tool.description].filter(
    (text): text is string => typeof text === 'string' && text !== '',
  )
  const description = parts.length > 0 ? { description: parts.join('\n\n') } : {}
  return { type: 'function', function: { name: exposedName, ...description, parameters: tool.inputSchema } }
}

/** The same for two that name one tool, whatever the label's case. */
function originKey(origin: CallOrigin): string {
  return origin.kind === 'built_in' ? origin.type : JSON.stringify([origin.label.toLowerCase(), origin.name])
}

function matches(called: CalledTool, reference: Exclude<ToolReference, { kind: 'function' }>): boolean {
  if (reference.kind === 'built_in')
    return called.kind === 'built_in' && called.type === (reference.type as BuiltInType)
  if (called.kind !== 'mcp') return false
  if (reference.label !== null && !sameLabel(called.label, reference.label)) return false
  return reference.name === undefined || reference.name === called.name
}

function sameLabel(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}
