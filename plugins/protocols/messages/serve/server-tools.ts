/** Tool servers of a request, as the gateway's tool loop takes them. */
import type { CallOrigin, LoopToolChoice, McpToolRequest } from '#kernel'
import { invalidField } from '../errors.ts'
import type { MessagesRequest } from '../wire.ts'
import { isObject } from './check-request.ts'
import { toWorkerId } from './tool-ids.ts'

type Json = Record<string, unknown>
type Filter = Pick<McpToolRequest, 'allowedTools' | 'deniedTools'>

/** Empty when the request wants none. @throws invalid_field (400) */
export function toServerTools(request: MessagesRequest): McpToolRequest[] {
  const { tools, mcp_servers: given } = request as MessagesRequest & { mcp_servers?: unknown }
  const servers = Array.isArray(given) ? given : []
  const places = placesOf(servers)
  const wanted: McpToolRequest[] = []
  for (const [index, tool] of (tools ?? []).entries()) {
    if (tool.type !== 'mcp_toolset') continue
    const at = places.get(tool.mcp_server_name) as number
    wanted.push(toRequest(servers[at], at, toFilter(tool, `tools.${index}`)))
  }
  if (wanted.length > 0) return wanted
  for (const [at, server] of servers.entries()) {
    if (!isObject(server)) throw invalidField(`mcp_servers.${at}`, 'must be an object')
    // The older form says on the server itself which of its tools are wanted.
    const { tool_configuration: configuration } = server
    if (!isObject(configuration) || configuration.enabled === false) continue
    const { allowed_tools: allowed } = configuration
    wanted.push(
      toRequest(
        server,
        at,
        Array.isArray(allowed) ? { allowedTools: { toolNames: allowed.map(String) } } : {},
      ),
    )
  }
  return wanted
}

/** Of the first server of each name. */
function placesOf(servers: readonly unknown[]): ReadonlyMap<unknown, number> {
  const places = new Map<unknown, number>()
  for (const [at, server] of servers.entries())
    if (isObject(server) && !places.has(server.name)) places.set(server.name, at)
  return places
}

function toRequest(server: Json, index: number, filter: Filter): McpToolRequest {
  const { name, url, authorization_token: token } = server
  const param = `mcp_servers.${index}`
  if (typeof name !== 'string' || name === '') throw invalidField(`${param}.name`, 'field required')
  if (url != null && typeof url !== 'string') throw invalidField(`${param}.url`, 'must be a text')
  return {
    kind: 'mcp',
    label: name,
    serverUrl: url ?? null,
    ...(typeof token === 'string' && { authorization: token }),
    ...filter,
    param,
  }
}

/** Single tools win over the default; those that are to be loaded later are not offered. */
function toFilter(toolset: Json, path: string): Filter {
  const { default_config: usual, configs } = toolset
  if (configs != null && !isObject(configs)) throw invalidField(`${path}.configs`, 'must be an object')
  const isOn = (config: unknown, fallback: boolean) => {
    if (!isObject(config)) return fallback
    return (config.enabled ?? fallback) === true && config.defer_loading !== true
  }
  const isUsuallyOn = isOn(usual, true)
  const single = Object.entries(configs ?? {}).map(([name, config]) => ({
    name,
    isOn: isOn(config, isUsuallyOn),
  }))
  const names = (wanted: boolean) => single.filter((one) => one.isOn === wanted).map(({ name }) => name)
  if (!isUsuallyOn) return { allowedTools: { toolNames: names(true) } }
  const denied = names(false)
  return denied.length === 0 ? {} : { deniedTools: denied }
}

/** A tool that is not the client's own is one of the servers'. */
export function toLoopChoice({ tool_choice: choice, tools }: MessagesRequest): LoopToolChoice | null {
  if (choice == null) return null
  if (choice.type === 'any') return { mode: 'required' }
  if (choice.type !== 'tool') return { mode: choice.type }
  const name = choice.name as string
  if ((tools ?? []).some((tool) => tool.name === name))
    return { mode: 'one', tool: { kind: 'function', name } }
  return { mode: 'one', tool: { kind: 'mcp', label: null, name } }
}

/** Who made the calls of earlier turns that the gateway has run. */
export function callOrigins({ messages }: MessagesRequest): Map<string, CallOrigin> {
  const origins = new Map<string, CallOrigin>()
  for (const { content } of messages) {
    if (typeof content === 'string') continue
    for (const { type, id, name, server_name: label } of content)
      if (type === 'mcp_tool_use' && typeof label === 'string')
        origins.set(toWorkerId(String(id)), { kind: 'mcp', label, name: String(name) })
  }
  return origins
}
