/** What the model is offered in each iteration, and whether it has to call: a forced choice holds for the first one only. */
import type { LoopToolChoice, ToolChoice, ToolReference } from '#kernel'
import { mcpErrors } from '../errors.ts'
import type { OfferedTools } from './offered-tools.ts'

/** Part of a generation request. */
export interface Offer {
  /** Names that may be called; null: all. */
  readonly only: ReadonlySet<string> | null
  readonly toolChoice: ToolChoice | null
}

/**
 * @param iteration 0-based
 * @throws tool_choice_tool_not_found (400) when the choice names what the turn does not have
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

/** Functions of the client alone, when the gateway's tools have had their turn. */
export function lastOffer(offered: OfferedTools, { only, toolChoice }: Offer): Offer {
  const own = offered.functions.map((tool) => tool.function.name)
  const mayCall = own.filter((name) => only === null || only.has(name))
  return { only: new Set(mayCall), toolChoice: toolChoice?.mode === 'none' ? toolChoice : null }
}

function namesOf(reference: ToolReference, offered: OfferedTools): string[] {
  const names = offered.namesOf(reference)
  if (names.length > 0) return names
  throw mcpErrors.tool_choice_tool_not_found.with({ param: 'tool_choice' }, nameOf(reference))
}

function nameOf(reference: ToolReference): string {
  if (reference.kind === 'function') return `the function '${reference.name}'`
  if (reference.kind === 'built_in') return `the built-in tool ${reference.type}`
  const of = reference.label === null ? 'any server' : `server '${reference.label}'`
  return reference.name === undefined ? of : `the tool '${reference.name}' of ${of}`
}
