/**
 * Functions in place of tools that only the Responses format has, for workers that do not speak it: a custom tool is a
 * function with one text, the functions of a namespace have its name in front of theirs, and a search of the client for further
 * tools is a function too.
 */
import { type ChatTool, type GatewayTool, type HistoryItem, isObject, type JsonObject } from '#kernel'
import { customFunction, memberName } from '#shared'
import { missing, wrongValue } from '../../errors.ts'

/** What a call of the function is in the format. */
export type StandIn =
  | { readonly kind: 'custom'; readonly namespace: string | null; readonly name: string }
  | { readonly kind: 'member'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'search' }

interface StandInFunction {
  readonly tool: ChatTool
  readonly standsFor: StandIn
}

/** Tools of a request. */
export interface DeclaredTools {
  readonly functions: readonly ChatTool[]
  readonly gateway: readonly GatewayTool[]
  /** As the client wrote them, by the function that the model gets. */
  readonly declarations: ReadonlyMap<ChatTool['function'], JsonObject>
  /** As the client wrote them, without secrets. */
  readonly echo: readonly JsonObject[]
  /** Functions among them that stand for a tool of another type, by name. */
  readonly standIns: ReadonlyMap<string, StandIn>
}

/** Type of the declaration, and name of its function. */
export const SEARCH_TOOL = 'tool_search'

/** @returns none for a tool of another type. @throws 400 naming the member */
export function standInsOf(tool: JsonObject, path: string): readonly StandInFunction[] {
  if (tool.type === 'custom') return [ofCustom(tool, path, null)]
  if (tool.type === SEARCH_TOOL) return isClientSearch(tool) ? [ofSearch(tool)] : []
  if (tool.type !== 'namespace') return []
  const namespace = nameOf(tool, path)
  const { tools } = tool
  if (!Array.isArray(tools)) return wrongValue(`${path}.tools`, 'must be an array', tools)
  return tools.flatMap((member: unknown, index) => {
    const at = `${path}.tools[${index}]`
    if (!isObject(member)) return wrongValue(at, 'must be an object', member)
    if (member.type === 'custom') return [ofCustom(member, at, namespace)]
    if (member.type !== 'function') return []
    const name = nameOf(member, at)
    return {
      tool: standInTool(memberName(namespace, name), member),
      standsFor: { kind: 'member', namespace, name },
    }
  })
}

/** True for a search that the client runs; others are run by a service. */
export function isClientSearch({ type, execution }: JsonObject): boolean {
  return type === SEARCH_TOOL && execution === 'client'
}

/** The function that stands for a tool with parameters. */
function standInTool(name: string, tool: JsonObject): ChatTool {
  return { ...functionTool(name, tool), isStandIn: true }
}

/** Strictness changes how a worker decodes, so it is sent only if the client set it. */
export function functionTool(name: string, { description, parameters, strict }: JsonObject): ChatTool {
  return {
    type: 'function',
    function: {
      name,
      ...(typeof description === 'string' && { description }),
      parameters: isObject(parameters) ? parameters : { type: 'object', properties: {} },
      ...(typeof strict === 'boolean' && { strict }),
    },
  }
}

function ofSearch(tool: JsonObject): StandInFunction {
  return { tool: standInTool(SEARCH_TOOL, tool), standsFor: { kind: 'search' } }
}

/** @throws missing_required_parameter (400) */
function nameOf({ name }: JsonObject, path: string): string {
  return typeof name === 'string' && name !== '' ? name : missing(`${path}.name`)
}

function ofCustom(tool: JsonObject, path: string, namespace: string | null): StandInFunction {
  const name = nameOf(tool, path)
  const functionName = namespace === null ? name : memberName(namespace, name)
  return {
    tool: { type: 'function', isStandIn: true, function: customFunction(functionName, tool) },
    standsFor: { kind: 'custom', namespace, name },
  }
}

// Tools that a search of the client found in earlier turns: the model may call them from then on.

export const SEARCH_OUTPUT = 'tool_search_output'
/** Its tools are offered from the item on. */
const ADDITIONAL_TOOLS = 'additional_tools'
const FOUND_PATH = 'input.tools'

/**
 * Adds what the items declare, or searches among them found. A declared function of the same name takes precedence.
 * @throws 400 naming a tool that cannot be read
 */
export function withFoundTools(tools: DeclaredTools, items: readonly JsonObject[]): DeclaredTools {
  const outputs = items.filter(({ type }) => type === SEARCH_OUTPUT || type === ADDITIONAL_TOOLS)
  if (outputs.length === 0) return tools
  const functions = new Map(tools.functions.map((tool) => [tool.function.name, tool]))
  const standIns = new Map(tools.standIns)
  for (const tool of outputs.flatMap(foundIn)) {
    if (tool.type === 'function') addOnce(functions, standInTool(nameOf(tool, FOUND_PATH), tool))
    for (const { tool: member, standsFor } of standInsOf(tool, FOUND_PATH))
      if (addOnce(functions, member)) standIns.set(member.function.name, standsFor)
  }
  return { ...tools, functions: [...functions.values()], standIns }
}

/** Names under which the tools of one output are offered, for the model. */
export function namesFound(output: HistoryItem): readonly string[] {
  return foundIn(output).flatMap((tool) =>
    tool.type === 'function'
      ? [nameOf(tool, FOUND_PATH)]
      : standInsOf(tool, FOUND_PATH).map((standIn) => standIn.tool.function.name),
  )
}

function foundIn({ tools }: JsonObject): readonly JsonObject[] {
  return Array.isArray(tools) ? tools.filter(isObject) : []
}

function addOnce(functions: Map<string, ChatTool>, tool: ChatTool): boolean {
  const { name } = tool.function
  if (functions.has(name)) return false
  functions.set(name, tool)
  return true
}
