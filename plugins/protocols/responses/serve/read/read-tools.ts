/**
 * The tools of a request and the choice among them: functions for the model, tools that the gateway runs, and other types,
 * which are echoed and only sent to workers that speak the format.
 */
import type {
  ApprovalRule,
  BuiltInType,
  ChatTool,
  GatewayTool,
  JsonObject,
  LoopToolChoice,
  McpToolRequest,
  ToolChoice,
  ToolFilter,
  ToolReference,
} from '#kernel'
import { missing, responsesErrors, shown, wrongValue } from '../../errors.ts'
import type {
  CreateBody,
  FunctionTool,
  McpTool,
  OtherTool,
  ToolChoice as WireChoice,
  ToolFilter as WireFilter,
} from '../../wire.ts'
import { type DeclaredTools, functionTool, type StandIn, standInsOf } from './stand-ins.ts'

const LABEL = /^[A-Za-z][A-Za-z0-9_-]{0,127}$/

const BUILT_IN = new Map<string, BuiltInType>([
  ['web_search_preview', 'web_search'],
  ['web_search', 'web_search'],
  ['web_search_preview_2025_03_11', 'web_search'],
  ['code_interpreter', 'code_interpreter'],
  ['file_search', 'file_search'],
])

export function builtInType(type: string): BuiltInType | null {
  return BUILT_IN.get(type) ?? null
}

const NO_TOOLS: DeclaredTools = {
  functions: [],
  gateway: [],
  declarations: new Map(),
  echo: [],
  standIns: new Map(),
}

/** @throws 400 naming the tool */
export function readTools({ tools }: CreateBody): DeclaredTools {
  if (tools == null) return NO_TOOLS
  const functions: ChatTool[] = []
  const gateway: GatewayTool[] = []
  const echo: JsonObject[] = []
  const names = new Set<string>()
  const standIns = new Map<string, StandIn>()
  const addFunction = (tool: ChatTool, path: string) => {
    const { name } = tool.function
    if (names.has(name)) throw responsesErrors.duplicate_tool_name.with({ param: `${path}.name` }, name)
    names.add(name)
    functions.push(tool)
  }
  const declarations = new Map<ChatTool['function'], JsonObject>()
  const labels = new Set<string>()
  for (const [index, tool] of tools.entries()) {
    const path = `tools[${index}]`
    if (isFunction(tool)) {
      const declared = readFunction(tool, path)
      const read = functionTool(declared.name, declared)
      addFunction(read, path)
      const stated = Object.entries(declared).filter(([, value]) => value !== null)
      declarations.set(read.function, { parameters: read.function.parameters, ...Object.fromEntries(stated) })
      echo.push(declared)
    } else if (isMcp(tool)) {
      const declared = readMcp(tool, path)
      const label = declared.label.toLowerCase()
      if (labels.has(label))
        throw responsesErrors.mcp_tool_duplicate_server_label.with(
          { param: `${path}.server_label` },
          declared.label,
        )
      labels.add(label)
      gateway.push(declared)
      const { authorization: _, headers: __, ...shown } = tool
      echo.push(shown)
    } else {
      const builtIn = builtInType(tool.type)
      if (builtIn !== null) {
        const { type: _, ...settings } = tool
        gateway.push({ kind: 'built_in', type: builtIn, settings, param: path })
      }
      for (const { tool: one, standsFor } of standInsOf(tool, path)) {
        addFunction(one, path)
        standIns.set(one.function.name, standsFor)
      }
      echo.push(tool)
    }
  }
  return { functions, gateway, declarations, echo, standIns }
}

type Tool = FunctionTool | McpTool | OtherTool

function isFunction(tool: Tool): tool is FunctionTool {
  return tool.type === 'function'
}

function isMcp(tool: Tool): tool is McpTool {
  return tool.type === 'mcp'
}

/** As it is echoed. */
function readFunction(tool: FunctionTool, path: string) {
  const { function: nested, ...flat } = tool
  const { name, ...members } = { ...flat, ...nested }
  return {
    description: null,
    parameters: null,
    strict: null,
    ...members,
    name: name || missing(`${path}.name`),
  }
}

function readMcp(tool: McpTool, path: string): McpToolRequest {
  const { server_label: label, server_description: description, authorization, allowed_tools } = tool
  if (!LABEL.test(label)) {
    const param = `${path}.server_label`
    throw responsesErrors.invalid_server_label.with({ param }, param, label)
  }
  const serverUrl = tool.server_url ?? null
  for (const name of ['connector_id', 'tunnel_id'] as const) {
    if ((tool[name] ?? null) === null) continue
    if (serverUrl !== null) throw responsesErrors.mcp_tool_conflicting_targets.with({ param: path })
    throw responsesErrors.unsupported_parameter.with({ param: `${path}.${name}` }, `${path}.${name}`)
  }
  const headers = tool.headers ? new Map(Object.entries(tool.headers)) : undefined
  const hasHeader = [...(headers?.keys() ?? [])].some((name) => name.toLowerCase() === 'authorization')
  if (hasHeader && typeof authorization === 'string')
    wrongValue(`${path}.authorization`, 'must not be set beside an Authorization header')
  const approval = toApprovalRule(tool.require_approval)
  return {
    kind: 'mcp',
    label,
    serverUrl,
    param: path,
    ...(typeof description === 'string' && { description }),
    ...(typeof authorization === 'string' && { authorization }),
    ...(headers !== undefined && { headers }),
    ...(allowed_tools && {
      allowedTools: Array.isArray(allowed_tools)
        ? { toolNames: allowed_tools }
        : toFilter(allowed_tools as WireFilter),
    }),
    ...(approval !== undefined && { approval }),
    ...(tool.elicitation === true && { elicits: true }),
  }
}

function toFilter({ tool_names: toolNames, read_only: isReadOnly }: WireFilter): ToolFilter {
  return { ...(toolNames && { toolNames }), ...(typeof isReadOnly === 'boolean' && { isReadOnly }) }
}

function toApprovalRule(rule: McpTool['require_approval']): ApprovalRule | undefined {
  if (typeof rule === 'string') return rule
  if (!rule) return undefined
  return {
    ...(rule.always && { always: toFilter(rule.always) }),
    ...(rule.never && { never: toFilter(rule.never) }),
  }
}

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
  if (tools.echo.length + tools.functions.length === 0)
    throw responsesErrors.tool_choice_requires_tools.with(PARAM)
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
      ? tools.echo.some((tool) => tool.type === type)
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
