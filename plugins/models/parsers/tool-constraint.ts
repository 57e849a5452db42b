/** The constraint that makes a model call tools as the request demands. */
import type { ChatTool, OutputConstraint, ToolChoice } from '#kernel'
import { parsersErrors } from './errors.ts'
import { type DeclaredTool, declaredTools } from './scan/tool-types.ts'
import { structuralTagOf } from './structural-tags.ts'

/** The tool choice of a request, applied to its allowed tools. */
export type CallChoice = 'auto' | 'none' | 'required' | { readonly name: string }

export interface CallDemand {
  readonly choice: CallChoice
  readonly tools: readonly DeclaredTool[]
}

/** @throws tool_choice_function_not_found (400) for an allowed tool that is not declared */
export function callDemand(given: readonly ChatTool[], choice: ToolChoice | null): CallDemand {
  const tools = declaredTools(given)
  if (choice === null) return { choice: tools.length === 0 ? 'none' : 'auto', tools }
  if (choice.mode === 'function') return { choice: { name: choice.name }, tools }
  if (choice.mode !== 'allowed') return { choice: choice.mode, tools }
  const names = new Set(choice.names)
  const allowed = tools.filter(({ name }) => names.has(name))
  for (const name of names) {
    if (!allowed.some((tool) => tool.name === name)) throw parsersErrors.tool_choice_function_not_found(name)
  }
  return { choice: choice.isRequired ? 'required' : 'auto', tools: allowed }
}

/** The tools that may be called; null if none must be called. */
export function demandedTools(
  choice: CallChoice,
  tools: readonly DeclaredTool[],
): readonly DeclaredTool[] | null {
  if (choice === 'auto' || choice === 'none') return null
  if (choice === 'required') {
    if (tools.length === 0) throw parsersErrors.tool_choice_requires_tools()
    return tools
  }
  const tool = tools.find(({ name }) => name === choice.name)
  if (tool === undefined) throw parsersErrors.tool_choice_function_not_found(choice.name)
  return [tool]
}

/** @param format name of the tool parser; its marks are required if they have a structural tag */
export function toolConstraint(
  choice: CallChoice,
  tools: readonly DeclaredTool[],
  format: string | null,
): OutputConstraint | null {
  const demanded = demandedTools(choice, tools)
  if (demanded === null) return null
  const isNamed = typeof choice === 'object'
  const tag = format === null ? null : structuralTagOf(format, demanded, isNamed)
  if (tag !== null) return { kind: 'structural_tag', tag }
  const schema = isNamed ? demanded[0].parameters : callsSchema(demanded)
  return { kind: 'json_schema', name: 'tool_calls', schema }
}

/** An array of at least one call of the tools. */
function callsSchema(tools: readonly DeclaredTool[]): Record<string, unknown> {
  const definitions = mergedDefinitions(tools)
  const anyOf = tools.map(({ name, parameters }) => {
    const { $defs: _merged, ...schema } = parameters
    return {
      properties: { name: { type: 'string', enum: [name] }, parameters: schema },
      required: ['name', 'parameters'],
    }
  })
  return {
    type: 'array',
    minItems: 1,
    items: { type: 'object', anyOf },
    ...(definitions.size === 0 ? {} : { $defs: Object.fromEntries(definitions) }),
  }
}

function mergedDefinitions(tools: readonly DeclaredTool[]): Map<string, unknown> {
  const merged = new Map<string, unknown>()
  for (const { parameters } of tools) {
    const { $defs: definitions } = parameters
    if (typeof definitions !== 'object' || definitions === null) continue
    for (const [name, schema] of Object.entries(definitions)) {
      const known = merged.get(name)
      if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema))
        throw parsersErrors.invalid_tool_configuration(name)
      merged.set(name, schema)
    }
  }
  return merged
}
