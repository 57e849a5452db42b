/**
 * Tool declarations: functions for the model, tools that the gateway runs, and kinds that nobody here runs, which are
 * echoed and left out. @source OpenAI API reference, Responses
 */
import type { ApprovalRule, BuiltInType, ChatTool, GatewayTool, McpToolRequest, ToolFilter } from '#kernel'
import { responsesErrors } from '../../errors.ts'
import {
  fieldOf,
  isObject,
  type Json,
  readArray,
  readBoolean,
  readObject,
  readString,
  readStrings,
  requireString,
  wrongType,
  wrongValue,
} from './fields.ts'

const MAX_TOOLS = 1_024
const MAX_NAMES = 1_024
const MAX_HEADERS = 64
const FUNCTION_NAME = /^[A-Za-z0-9_-]{1,128}$/
const LABEL = /^[A-Za-z][A-Za-z0-9_-]{0,127}$/

const BUILT_IN = new Map<string, BuiltInType>([
  ['web_search_preview', 'web_search'],
  ['web_search', 'web_search'],
  ['web_search_preview_2025_03_11', 'web_search'],
  ['code_interpreter', 'code_interpreter'],
  ['file_search', 'file_search'],
])

export interface DeclaredTools {
  readonly functions: readonly ChatTool[]
  readonly gateway: readonly GatewayTool[]
  /** In the client's order and words, secrets taken out. */
  readonly echo: readonly Json[]
  /** Types that were declared, for `tool_choice`. */
  readonly types: ReadonlySet<string>
}

export function builtInType(type: string): BuiltInType | null {
  return BUILT_IN.get(type) ?? null
}

/** @throws 400 naming the tool */
export function readTools(body: Json): DeclaredTools {
  const list = readArray(body, 'tools', 'tools') ?? []
  if (list.length > MAX_TOOLS) wrongValue('tools', `must have at most ${MAX_TOOLS} items`)
  const functions: ChatTool[] = []
  const gateway: GatewayTool[] = []
  const echo: Json[] = []
  const types = new Set<string>()
  const names = new Set<string>()
  const labels = new Set<string>()
  for (const [index, tool] of list.entries()) {
    const path = `tools[${index}]`
    if (!isObject(tool)) wrongType(path, 'an object')
    const type = requireString(tool, 'type', `${path}.type`)
    types.add(type)
    if (type === 'function') {
      const declared = readFunction(tool, path)
      if (names.has(declared.name))
        throw responsesErrors.duplicate_tool_name.with({ param: `${path}.name` }, declared.name)
      names.add(declared.name)
      functions.push(toChatTool(declared))
      echo.push({ type, ...declared })
    } else if (type === 'mcp') {
      const declared = readMcp(tool, path)
      const label = declared.label.toLowerCase()
      if (labels.has(label))
        throw responsesErrors.mcp_tool_duplicate_server_label.with(
          { param: `${path}.server_label` },
          declared.label,
        )
      labels.add(label)
      gateway.push(declared)
      echo.push(withoutSecrets(tool))
    } else {
      const builtIn = builtInType(type)
      if (builtIn !== null) {
        const { type: _, ...settings } = tool
        gateway.push({ kind: 'built_in', type: builtIn, settings, param: path })
      }
      echo.push(tool)
    }
  }
  return { functions, gateway, echo, types }
}

interface DeclaredFunction {
  readonly name: string
  readonly description: string | null
  readonly parameters: unknown
  readonly strict: boolean | null
}

function readFunction(tool: Json, path: string): DeclaredFunction {
  const nested = fieldOf(tool, 'function')
  const declared = isObject(nested) ? nested : tool
  const name = requireString(declared, 'name', `${path}.name`)
  if (!FUNCTION_NAME.test(name))
    wrongValue(`${path}.name`, 'must be letters, digits, hyphens and underscores, at most 128')
  return {
    name,
    description: readString(declared, 'description', `${path}.description`) ?? null,
    parameters: readObject(declared, 'parameters', `${path}.parameters`) ?? null,
    strict: readBoolean(declared, 'strict', `${path}.strict`) ?? null,
  }
}

/** Strictness changes how a worker decodes: it is never made up. */
function toChatTool({ name, description, parameters, strict }: DeclaredFunction): ChatTool {
  return {
    type: 'function',
    function: {
      name,
      ...(description !== null && { description }),
      parameters: parameters ?? { type: 'object', properties: {} },
      ...(strict !== null && { strict }),
    },
  }
}

function readMcp(tool: Json, path: string): McpToolRequest {
  const label = requireString(tool, 'server_label', `${path}.server_label`)
  if (!LABEL.test(label)) throw responsesErrors.invalid_server_label.with({ param: `${path}.server_label` })
  const serverUrl = readString(tool, 'server_url', `${path}.server_url`) ?? null
  for (const name of ['connector_id', 'tunnel_id']) {
    if (fieldOf(tool, name) === undefined) continue
    if (serverUrl !== null) throw responsesErrors.mcp_tool_conflicting_targets.with({ param: path })
    throw responsesErrors.unsupported_parameter.with({ param: `${path}.${name}` }, `${path}.${name}`)
  }
  const description = readString(tool, 'server_description', `${path}.server_description`)
  const authorization = readString(tool, 'authorization', `${path}.authorization`)
  const headers = readHeaders(tool, path)
  if (authorization !== undefined && headers !== undefined)
    for (const name of headers.keys())
      if (name.toLowerCase() === 'authorization')
        wrongValue(`${path}.authorization`, 'must not be set beside an Authorization header')
  const allowedTools = readAllowed(fieldOf(tool, 'allowed_tools'), `${path}.allowed_tools`)
  const approval = readApproval(fieldOf(tool, 'require_approval'), `${path}.require_approval`)
  return {
    kind: 'mcp',
    label,
    serverUrl,
    param: path,
    ...(description !== undefined && { description }),
    ...(authorization !== undefined && { authorization }),
    ...(headers !== undefined && { headers }),
    ...(allowedTools !== undefined && { allowedTools }),
    ...(approval !== undefined && { approval }),
  }
}

function readHeaders(tool: Json, path: string): ReadonlyMap<string, string> | undefined {
  const headers = readObject(tool, 'headers', `${path}.headers`)
  if (headers === undefined) return undefined
  const entries = Object.entries(headers)
  if (entries.length > MAX_HEADERS) wrongValue(`${path}.headers`, `must have at most ${MAX_HEADERS} members`)
  for (const [, value] of entries)
    if (typeof value !== 'string') wrongType(`${path}.headers`, 'an object of strings')
  return new Map(entries as [string, string][])
}

function readAllowed(value: unknown, path: string): ToolFilter | undefined {
  if (value === undefined) return undefined
  if (Array.isArray(value)) return { toolNames: readStrings({ value }, 'value', path, MAX_NAMES) ?? [] }
  return readFilter(value, path)
}

function readFilter(value: unknown, path: string): ToolFilter {
  if (!isObject(value)) wrongType(path, 'an array of names or an object')
  const toolNames = readStrings(value, 'tool_names', `${path}.tool_names`, MAX_NAMES)
  const isReadOnly = readBoolean(value, 'read_only', `${path}.read_only`)
  return { ...(toolNames !== undefined && { toolNames }), ...(isReadOnly !== undefined && { isReadOnly }) }
}

function readApproval(value: unknown, path: string): ApprovalRule | undefined {
  if (value === undefined || value === 'always' || value === 'never') return value
  if (!isObject(value)) wrongValue(path, 'must be always, never or an object')
  const always = fieldOf(value, 'always')
  const never = fieldOf(value, 'never')
  return {
    ...(always !== undefined && { always: readFilter(always, `${path}.always`) }),
    ...(never !== undefined && { never: readFilter(never, `${path}.never`) }),
  }
}

function withoutSecrets(tool: Json): Json {
  const { authorization: _, headers: __, ...rest } = tool
  return rest
}
