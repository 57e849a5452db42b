/** The constraints on an output, that of the tool choice and that of the request, and their names in each kind of engine. */
import type { AnswerDemands, ChatTool, EngineConstraint, OutputConstraint, ToolChoice } from '#kernel'
import { parsersErrors } from './errors.ts'
import { type DeclaredTool, declaredTools } from './scan/tool-types.ts'
import { harmonyAnswerTag, structuralTagOf } from './structural-tags.ts'

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

/** The constraint of the tool choice or of the request. @throws multiple_constraints (400) for both */
export function answerConstraint(demands: AnswerDemands, isHarmony: boolean): OutputConstraint | null {
  const { toolConstraint = null, constraint = null } = demands
  if (toolConstraint !== null && constraint !== null)
    throw parsersErrors.multiple_constraints('tool_choice', constraint.kind)
  if (constraint === null) return toolConstraint
  const schema = isHarmony ? schemaOf(constraint) : null
  return schema === null ? constraint : { kind: 'structural_tag', tag: harmonyAnswerTag(schema) }
}

/** Null for constraints that are no schema. */
function schemaOf(constraint: OutputConstraint): unknown {
  if (constraint.kind === 'json_object') return { type: 'object' }
  return constraint.kind === 'json_schema' ? constraint.schema : null
}

function textOf(constraint: OutputConstraint): string {
  switch (constraint.kind) {
    case 'regex':
      return constraint.pattern
    case 'ebnf':
      return constraint.grammar
    case 'structural_tag':
      return JSON.stringify(constraint.tag)
    default:
      return JSON.stringify(schemaOf(constraint))
  }
}

/** By runtime: the field, or the kind of guide, that carries a constraint, if it is not named as the constraint. */
const engineNames: ReadonlyMap<string, Partial<Record<OutputConstraint['kind'], string>>> = new Map([
  ['sglang', { ebnf: 'ebnf_grammar' }],
  ['tokenspeed', { ebnf: 'ebnf_grammar' }],
  ['vllm', { ebnf: 'grammar' }],
  [
    'trtllm',
    {
      json_schema: 'GUIDE_TYPE_JSON_SCHEMA',
      regex: 'GUIDE_TYPE_REGEX',
      ebnf: 'GUIDE_TYPE_EBNF_GRAMMAR',
      structural_tag: 'GUIDE_TYPE_STRUCTURAL_TAG',
    },
  ],
])

/** Null for engines that take no constraints. */
export function engineConstraint(runtime: string, constraint: OutputConstraint): EngineConstraint | null {
  const names = engineNames.get(runtime)
  if (names === undefined) return null
  const kind = constraint.kind === 'json_object' ? 'json_schema' : constraint.kind
  return { name: names[kind] ?? kind, text: textOf(constraint) }
}
