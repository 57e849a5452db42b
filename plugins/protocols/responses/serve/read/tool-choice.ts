/** The tool choice: tools that the model must, may or must not call. */
import type { LoopToolChoice, ToolChoice, ToolReference } from '#kernel'
import { missing, responsesErrors, shown } from '../../errors.ts'
import type { CreateBody, ToolChoice as WireChoice } from '../../wire.ts'
import { builtInType, type DeclaredTools } from './read-tools.ts'

export interface RequestedChoice {
  /** Null if the client did not set one, or named a tool that only workers know. */
  readonly choice: LoopToolChoice | null
  /** As the client wrote it, in the flat form. */
  readonly echo: unknown
}

const PARAM = { param: 'tool_choice' } as const

/** @throws 400, param `tool_choice` */
export function readToolChoice({ tool_choice: choice }: CreateBody, tools: DeclaredTools): RequestedChoice {
  if (choice === undefined || choice === null) return { choice: null, echo: 'auto' }
  if (choice === 'auto' || choice === 'none') return { choice: { mode: choice }, echo: choice }
  if (typeof choice === 'string' && choice !== 'required')
    throw responsesErrors.tool_choice_invalid_mode.with(PARAM, shown(choice))
  if (tools.echo.length === 0) throw responsesErrors.tool_choice_requires_tools.with(PARAM)
  if (typeof choice === 'string') return { choice: { mode: 'required' }, echo: choice }
  if (choice.type === 'allowed_tools') return readAllowedTools(choice, tools)
  const { reference, echo } = readReference(choice, tools)
  return { choice: reference === null ? null : { mode: 'one', tool: reference }, echo }
}

function readAllowedTools(choice: WireChoice, tools: DeclaredTools): RequestedChoice {
  const mode = choice.mode ?? 'auto'
  const listed = choice.tools ?? []
  const references: ToolReference[] = []
  for (const one of listed) {
    const { reference } = readReference(one, tools)
    if (reference !== null) references.push(reference)
  }
  return {
    choice: { mode: 'allowed', tools: references, isRequired: mode === 'required' },
    echo: { type: 'allowed_tools', mode, tools: listed },
  }
}

/** A null reference is to a type of tool that the gateway does not run: the model is then free. */
function readReference(
  choice: NonNullable<WireChoice['tools']>[number],
  tools: DeclaredTools,
): { reference: ToolReference | null; echo: unknown } {
  const type = choice.type ?? ''
  if (type === 'function') {
    const name = (choice.function ?? choice).name || missing('tool_choice.name')
    if (!tools.functions.some((tool) => tool.function.name === name))
      throw responsesErrors.tool_choice_function_not_found.with(PARAM, shown(name))
    return { reference: { kind: 'function', name }, echo: { type, name } }
  }
  if (type === 'mcp') {
    const { name } = choice
    const label = choice.server_label || missing('tool_choice.server_label')
    if (!tools.gateway.some((tool) => tool.kind === 'mcp' && tool.label === label))
      throw responsesErrors.tool_choice_tool_not_found.with(PARAM, shown(label))
    return { reference: { kind: 'mcp', label, ...(typeof name === 'string' && { name }) }, echo: choice }
  }
  if (type === 'custom' && choice.name !== undefined && choice.name !== null) {
    const { name } = choice
    if (tools.standIns.get(name)?.kind === 'custom')
      return { reference: { kind: 'function', name }, echo: choice }
  }
  const builtIn = builtInType(type)
  const isDeclared =
    builtIn === null
      ? tools.types.has(type)
      : tools.gateway.some((tool) => tool.kind === 'built_in' && tool.type === builtIn)
  if (!isDeclared) throw responsesErrors.tool_choice_tool_not_found.with(PARAM, shown(type))
  return { reference: builtIn === null ? null : { kind: 'built_in', type: builtIn }, echo: choice }
}

/** The choice for a request without tools of the gateway; null if it names one of those. */
export function toPlainChoice(choice: LoopToolChoice | null, functionCount: number): ToolChoice | null {
  if (choice === null || functionCount === 0) return null
  if (choice.mode === 'one')
    return choice.tool.kind === 'function' ? { mode: 'function', name: choice.tool.name } : null
  if (choice.mode !== 'allowed') return { mode: choice.mode }
  const names = choice.tools.flatMap((tool) => (tool.kind === 'function' ? [tool.name] : []))
  return { mode: 'allowed', names, isRequired: choice.isRequired }
}
