/** What the model must, may and must not call. @source OpenAI API reference, Responses */
import type { LoopToolChoice, ToolChoice, ToolReference } from '#kernel'
import { responsesErrors, shown } from '../../errors.ts'
import { fieldOf, isObject, type Json, readArray, readChoice, readString, requireString } from './fields.ts'
import { builtInType, type DeclaredTools } from './read-tools.ts'

export interface WishedChoice {
  /** Null: the client did not say. */
  readonly wish: LoopToolChoice | null
  /** In the client's words, in the flat form. */
  readonly echo: unknown
}

const PARAM = { param: 'tool_choice' } as const

/** @throws 400, param `tool_choice` */
export function readToolChoice(body: Json, tools: DeclaredTools): WishedChoice {
  const choice = fieldOf(body, 'tool_choice')
  if (choice === undefined) return { wish: null, echo: 'auto' }
  if (choice === 'auto' || choice === 'none') return { wish: { mode: choice }, echo: choice }
  if (choice !== 'required' && !isObject(choice))
    throw responsesErrors.tool_choice_invalid_mode.with(PARAM, shown(choice))
  if (tools.echo.length === 0) throw responsesErrors.tool_choice_requires_tools.with(PARAM)
  if (choice === 'required') return { wish: { mode: 'required' }, echo: choice }
  if (choice.type === 'allowed_tools') return readAllowedTools(choice, tools)
  const { reference, echo } = readReference(choice, tools)
  return { wish: reference === null ? null : { mode: 'one', tool: reference }, echo }
}

function readAllowedTools(choice: Json, tools: DeclaredTools): WishedChoice {
  const mode = readChoice(choice, 'mode', 'tool_choice.mode', ['auto', 'required']) ?? 'auto'
  const listed = readArray(choice, 'tools', 'tool_choice.tools') ?? []
  const references: ToolReference[] = []
  for (const one of listed) {
    if (!isObject(one)) throw responsesErrors.tool_choice_tool_not_found.with(PARAM, shown(one))
    const { reference } = readReference(one, tools)
    if (reference !== null) references.push(reference)
  }
  return {
    wish: { mode: 'allowed', tools: references, isRequired: mode === 'required' },
    echo: { type: 'allowed_tools', mode, tools: listed },
  }
}

/** Null for a kind that nobody here runs: the model is then free. */
function readReference(choice: Json, tools: DeclaredTools): { reference: ToolReference | null; echo: Json } {
  const type = readString(choice, 'type', 'tool_choice.type') ?? ''
  if (type === 'function') {
    const nested = fieldOf(choice, 'function')
    const name = requireString(isObject(nested) ? nested : choice, 'name', 'tool_choice.name')
    if (!tools.functions.some((tool) => tool.function.name === name))
      throw responsesErrors.tool_choice_function_not_found.with(PARAM, shown(name))
    return { reference: { kind: 'function', name }, echo: { type, name } }
  }
  if (type === 'mcp') {
    const label = requireString(choice, 'server_label', 'tool_choice.server_label')
    const name = readString(choice, 'name', 'tool_choice.name')
    if (!tools.gateway.some((tool) => tool.kind === 'mcp' && tool.label === label))
      throw responsesErrors.tool_choice_tool_not_found.with(PARAM, shown(label))
    return { reference: { kind: 'mcp', label, ...(name !== undefined && { name }) }, echo: choice }
  }
  const builtIn = builtInType(type)
  const isDeclared =
    builtIn === null
      ? tools.types.has(type)
      : tools.gateway.some((tool) => tool.kind === 'built_in' && tool.type === builtIn)
  if (!isDeclared) throw responsesErrors.tool_choice_tool_not_found.with(PARAM, shown(type))
  return { reference: builtIn === null ? null : { kind: 'built_in', type: builtIn }, echo: choice }
}

/** The choice for a request without tools of the gateway: what names one of those counts as no wish. */
export function toPlainChoice(wish: LoopToolChoice | null, functionCount: number): ToolChoice | null {
  if (wish === null || functionCount === 0) return null
  if (wish.mode === 'one')
    return wish.tool.kind === 'function' ? { mode: 'function', name: wish.tool.name } : null
  if (wish.mode !== 'allowed') return { mode: wish.mode }
  const names = wish.tools.flatMap((tool) => (tool.kind === 'function' ? [tool.name] : []))
  return { mode: 'allowed', names, isRequired: wish.isRequired }
}
