/** The tools of a turn as they are offered to the model, with its tool choice, and their lookup by name and by origin. */
import type {
  BuiltInType,
  CalledTool,
  ChatTool,
  ListedTool,
  LoopToolChoice,
  ToolChoice,
  ToolReference,
} from '#kernel'
import { mcpErrors } from '../errors.ts'
import { exposeNames, type ToolName } from '../tools/exposed-names.ts'
import { needsApproval, type OpenServer } from '../tools/open-server.ts'
import { toModelSchema } from '../tools/tool-schema.ts'
import { builtInFunction } from './built-in-functions.ts'

/** A tool that the gateway runs. */
export interface OfferedTool {
  readonly exposedName: string
  readonly called: CalledTool
  readonly server: OpenServer
  readonly tool: ListedTool
  readonly needsApproval: boolean
  /** Clients see neither the tool nor its calls. */
  readonly isHidden: boolean
}

export interface ServerWithTools {
  readonly server: OpenServer
  readonly tools: readonly ListedTool[]
}

export class OfferedTools {
  /** The client's own functions first, in its order, then the servers' in theirs. */
  readonly functions: readonly ChatTool[]
  readonly #functionNames: ReadonlySet<string>
  readonly #byName = new Map<string, OfferedTool>()
  readonly #byOrigin = new Map<string, OfferedTool>()

  /** @param reserved names that the model knows already */
  constructor(
    functions: readonly ChatTool[],
    servers: readonly ServerWithTools[],
    defaultApproval: 'always' | 'never',
    reserved: Iterable<string> = [],
  ) {
    this.functions = functions
    this.#functionNames = new Set(functions.map((tool) => tool.function.name))
    const names: ToolName[] = []
    const found: Omit<OfferedTool, 'exposedName'>[] = []
    for (const { server, tools } of servers) {
      for (const tool of tools) {
        names.push(nameOf(server, tool))
        found.push(describe(server, tool, defaultApproval))
      }
    }
    const taken = new Set(reserved)
    for (const name of this.#functionNames) taken.add(name)
    exposeNames(taken, names).forEach((exposedName, i) => {
      const tool = { ...found[i], exposedName }
      const origin = originKey(tool.called)
      this.#byName.set(exposedName, tool)
      if (!this.#byOrigin.has(origin)) this.#byOrigin.set(origin, tool)
    })
  }

  get hasGatewayTools(): boolean {
    return this.#byName.size > 0
  }

  /** True for functions of the client. */
  hasFunction(name: string): boolean {
    return this.#functionNames.has(name)
  }

  find(exposedName: string): OfferedTool | undefined {
    return this.#byName.get(exposedName)
  }

  /** The tool of an earlier call or of an approval; undefined if the turn no longer has it. */
  findOrigin(origin: CalledTool): OfferedTool | undefined {
    return this.#byOrigin.get(originKey(origin))
  }

  /** Exposed names of the tools that a choice refers to; empty if the turn has none. */
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

  /** Tools of a generation request. @param only names to include; null for all */
  toChatTools(only: ReadonlySet<string> | null): ChatTool[] {
    const isIncluded = (name: string) => only === null || only.has(name)
    const functions = this.functions.filter((tool) => isIncluded(tool.function.name))
    const own = [...this.#byName.values()]
      .filter(({ exposedName }) => isIncluded(exposedName))
      .map(toChatTool)
    return [...functions, ...own]
  }
}

function nameOf(server: OpenServer, tool: ListedTool): ToolName {
  const { builtIn, label } = server.plan
  return builtIn === null ? { label, name: tool.name } : { label: null, name: builtIn.config.type }
}

function describe(
  server: OpenServer,
  tool: ListedTool,
  defaultApproval: 'always' | 'never',
): Omit<OfferedTool, 'exposedName'> {
  const { builtIn, config, request, label, isHidden } = server.plan
  if (builtIn !== null) {
    const called = { kind: 'built_in', type: builtIn.config.type } as const
    // Calls of built-in tools are visible although their server is hidden.
    return { called, server, tool, needsApproval: false, isHidden: false }
  }
  return {
    called: { kind: 'mcp', label, name: tool.name },
    server,
    tool,
    // Clients cannot approve calls that are hidden from them.
    needsApproval: !isHidden && needsApproval(tool, request?.approval, config?.approval ?? defaultApproval),
    isHidden,
  }
}

function toChatTool({ exposedName, called, server, tool }: OfferedTool): ChatTool {
  if (called.kind === 'built_in') return builtInFunction(called.type, exposedName, tool)
  const { parameters, rule } = toModelSchema(tool.inputSchema)
  const parts = [server.plan.request?.description, tool.description, rule].filter(
    (text): text is string => typeof text === 'string' && text !== '',
  )
  const description = parts.length > 0 ? { description: parts.join('\n\n') } : {}
  return { type: 'function', function: { name: exposedName, ...description, parameters } }
}

/** Labels are case-insensitive. */
function originKey(origin: CalledTool): string {
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

/** Tools and tool choice of a generation request. */
export interface Offer {
  /** Names that the model may call; null for all. */
  readonly only: ReadonlySet<string> | null
  readonly toolChoice: ToolChoice | null
}

/**
 * A forced choice applies to the first iteration only.
 *
 * @param iteration 0-based
 * @throws tool_choice_tool_not_found (400) if the choice names a tool that the turn does not have
 */
export function offerFor(choice: LoopToolChoice | null, offered: OfferedTools, iteration: number): Offer {
  if (choice === null) return { only: null, toolChoice: null }
  const isFirst = iteration === 0
  if (choice.mode === 'one') {
    const names = namesOf(choice.tool, offered)
    if (!isFirst) return { only: null, toolChoice: { mode: 'auto' } }
    const isServer = choice.tool.kind === 'mcp' && choice.tool.name === undefined
    if (isServer) return { only: new Set(names), toolChoice: { mode: 'required' } }
    return { only: null, toolChoice: { mode: 'function', name: names[0] } }
  }
  if (choice.mode === 'allowed') {
    const only = new Set(choice.tools.flatMap((tool) => namesOf(tool, offered)))
    return { only, toolChoice: { mode: isFirst && choice.isRequired ? 'required' : 'auto' } }
  }
  return { only: null, toolChoice: { mode: choice.mode === 'required' && !isFirst ? 'auto' : choice.mode } }
}

/** Offers only functions of the client, after the limit of gateway calls is reached. */
export function lastOffer(offered: OfferedTools, { only, toolChoice }: Offer): Offer {
  const own = offered.functions.map((tool) => tool.function.name)
  const mayCall = own.filter((name) => only === null || only.has(name))
  return { only: new Set(mayCall), toolChoice: toolChoice?.mode === 'none' ? toolChoice : null }
}

function namesOf(reference: ToolReference, offered: OfferedTools): string[] {
  const names = offered.namesOf(reference)
  if (names.length > 0) return names
  throw mcpErrors.tool_choice_tool_not_found.with({ param: 'tool_choice' }, describeReference(reference))
}

function describeReference(reference: ToolReference): string {
  if (reference.kind === 'function') return `the function '${reference.name}'`
  if (reference.kind === 'built_in') return `the built-in tool ${reference.type}`
  const of = reference.label === null ? 'any server' : `server '${reference.label}'`
  return reference.name === undefined ? of : `the tool '${reference.name}' of ${of}`
}
