/** Tools that a search of the client found in earlier turns: the model may call them from then on. */
import { type ChatTool, type HistoryItem, isObject } from '#kernel'
import type { DeclaredTools } from './read-tools.ts'
import { nameOf, standInsOf, standInTool } from './stand-ins.ts'

export const SEARCH_OUTPUT = 'tool_search_output'

/**
 * Adds what the searches among the items found. A declared function of the same name takes precedence.
 * @throws 400 naming a tool that cannot be read
 */
export function withFoundTools(tools: DeclaredTools, items: readonly HistoryItem[]): DeclaredTools {
  const outputs = items.filter(({ type }) => type === SEARCH_OUTPUT)
  if (outputs.length === 0) return tools
  const functions = new Map(tools.functions.map((tool) => [tool.function.name, tool]))
  const standIns = new Map(tools.standIns)
  for (const tool of outputs.flatMap(foundIn)) {
    if (tool.type === 'function') addOnce(functions, standInTool(nameOf(tool, PATH), tool))
    for (const { tool: member, standsFor } of standInsOf(tool, PATH))
      if (addOnce(functions, member)) standIns.set(member.function.name, standsFor)
  }
  return { ...tools, functions: [...functions.values()], standIns }
}

/** Names under which the tools of one output are offered, for the model. */
export function namesFound(output: HistoryItem): readonly string[] {
  return foundIn(output).flatMap((tool) =>
    tool.type === 'function'
      ? [nameOf(tool, PATH)]
      : standInsOf(tool, PATH).map((standIn) => standIn.tool.function.name),
  )
}

const PATH = 'input.tools'

type Tool = Readonly<Record<string, unknown>>

function foundIn({ tools }: HistoryItem): readonly Tool[] {
  return Array.isArray(tools) ? tools.filter(isObject) : []
}

function addOnce(functions: Map<string, ChatTool>, tool: ChatTool): boolean {
  const { name } = tool.function
  if (functions.has(name)) return false
  functions.set(name, tool)
  return true
}
