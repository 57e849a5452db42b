/** Tools that the gateway runs for a request: who runs them, and the request in the form of the tool loop. */
import {
  type CalledTool,
  Generations,
  type Host,
  type LoopToolChoice,
  type McpToolRequest,
  type RequestContext,
  type WorkerEntry,
} from '#kernel'
import type { MessagesRequest, WireServer, WireTool } from '../wire.ts'
import { toWorkerId } from './tool-ids.ts'

/** With the value `enabled`, either makes the gateway run the tools although an external service could. */
export const TOOLS_HEADERS = ['x-weir-mcp', 'x-smg-mcp'] as const
/** Label of a worker with the same effect. */
const LABEL = 'mcp'

export function asksForTools(ctx: RequestContext): boolean {
  return TOOLS_HEADERS.some((name) => ctx.header(name)?.toLowerCase() === 'enabled')
}

/** True if a worker of the model cannot call tool servers itself: an engine, or a service with the label. */
export function runsToolsFor(host: Host, model: string): boolean {
  const generations = host.use(Generations)
  const needsGateway = (worker: WorkerEntry) =>
    (!worker.isExternal || worker.labels[LABEL] === 'gateway') && generations.canGenerate(worker)
  return host.balance.workersOf(model).some(needsGateway)
}

type Filter = Pick<McpToolRequest, 'allowedTools' | 'deniedTools'>

/** Tool servers that the request uses; empty for none. */
export function toServerTools({ tools, mcp_servers: given }: MessagesRequest): McpToolRequest[] {
  const servers = given ?? []
  const indexes = indexByName(servers)
  const used: McpToolRequest[] = []
  for (const tool of tools ?? []) {
    const index = tool.type === 'mcp_toolset' ? indexes.get(tool.mcp_server_name) : undefined
    if (index !== undefined) used.push(toRequest(servers[index], index, toFilter(tool)))
  }
  if (used.length > 0) return used
  for (const [index, server] of servers.entries()) {
    // The older form states on the server itself which of its tools are used.
    const { tool_configuration: settings } = server
    if (settings == null || settings.enabled === false) continue
    const allowed = settings.allowed_tools
    used.push(toRequest(server, index, allowed == null ? {} : { allowedTools: { toolNames: allowed } }))
  }
  return used
}

/** The first server of each name. */
function indexByName(servers: readonly WireServer[]): ReadonlyMap<string | undefined, number> {
  const indexes = new Map<string | undefined, number>()
  for (const [index, { name }] of servers.entries()) if (!indexes.has(name)) indexes.set(name, index)
  return indexes
}

function toRequest(
  { name, url, authorization_token: token }: WireServer,
  index: number,
  filter: Filter,
): McpToolRequest {
  return {
    kind: 'mcp',
    label: name,
    serverUrl: url ?? null,
    ...(typeof token === 'string' && { authorization: token }),
    ...filter,
    param: `mcp_servers.${index}`,
  }
}

/** Settings of single tools take precedence over the default; tools with `defer_loading` are not offered. */
function toFilter({ default_config: fallback, configs }: WireTool): Filter {
  type Settings = typeof fallback
  const isOn = (settings: Settings, byDefault: boolean) =>
    settings == null ? byDefault : (settings.enabled ?? byDefault) && settings.defer_loading !== true
  const isOnByDefault = isOn(fallback, true)
  const named = Object.entries(configs ?? {})
  const names = (wanted: boolean) =>
    named.filter(([, settings]) => isOn(settings, isOnByDefault) === wanted).map(([name]) => name)
  if (!isOnByDefault) return { allowedTools: { toolNames: names(true) } }
  const denied = names(false)
  return denied.length === 0 ? {} : { deniedTools: denied }
}

/** A name that is not among the client's own tools is that of a server's tool. */
export function toLoopChoice({ tool_choice: choice, tools }: MessagesRequest): LoopToolChoice | null {
  if (choice == null) return null
  if (choice.type === 'any') return { mode: 'required' }
  if (choice.type !== 'tool') return { mode: choice.type }
  const { name = '' } = choice
  if ((tools ?? []).some((tool) => tool.name === name))
    return { mode: 'one', tool: { kind: 'function', name } }
  return { mode: 'one', tool: { kind: 'mcp', label: null, name } }
}

/** Servers of the calls that the gateway ran in earlier turns, by call id. */
export function callOrigins({ messages }: MessagesRequest): Map<string, CalledTool> {
  const origins = new Map<string, CalledTool>()
  for (const { content } of messages) {
    if (typeof content === 'string') continue
    for (const block of content) {
      if (block.type !== 'mcp_tool_use' || typeof block.server_name !== 'string') continue
      const { id, name, server_name: label } = block
      origins.set(toWorkerId(id), { kind: 'mcp', label, name })
    }
  }
  return origins
}
