/** Plans the servers that a request declares, with all checks that need no connection. */
import type { BuiltInToolRequest, GatewayTool, McpToolRequest, ToolTurn } from '#kernel'
import { readAllowedUrl, rulesFor } from '#shared'
import type { BuiltInConfig, McpConfig } from '../config.ts'
import { connectionKey } from '../connection/server-target.ts'
import { mcpErrors } from '../errors.ts'
import type { ConfiguredServers, KnownServer } from './configured-servers.ts'
import { toQuestionAnswer } from './question-answers.ts'

/** One server of a turn, before it is opened. */
export interface ServerPlan extends KnownServer {
  readonly label: string
  /** Null for the server of a built-in tool. */
  readonly request: McpToolRequest | null
  readonly builtIn: { readonly config: BuiltInConfig; readonly request: BuiltInToolRequest } | null
}

const LABEL = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

/** @throws GatewayError (400) with the param */
export function planServers(
  tools: readonly GatewayTool[],
  tenant: string,
  config: McpConfig,
  servers: ConfiguredServers,
): ServerPlan[] {
  const { maxServersPerRequest } = config.limits
  if (tools.length > maxServersPerRequest) throw mcpErrors.too_many_mcp_servers(maxServersPerRequest)
  const labels = new Set<string>()
  const plans: ServerPlan[] = []
  for (const tool of tools) {
    if (tool.kind === 'mcp') {
      const label = tool.label.toLowerCase()
      if (labels.has(label))
        throw mcpErrors.mcp_tool_duplicate_server_label.with(
          { param: `${tool.param}.server_label` },
          tool.label,
        )
      labels.add(label)
      plans.push(planServer(tool, tenant, config, servers))
    } else {
      const plan = planBuiltIn(tool, tenant, servers)
      if (plan !== null) plans.push(plan)
      else if (config.isStrict)
        throw mcpErrors.tool_not_available.with({ param: `${tool.param}.type` }, tool.type)
    }
  }
  return plans
}

/**
 * The server of an approved call, and the one that asked a question, must be among the tools; denials need none.
 * @throws unknown_mcp_server, invalid_elicitation_answer (400)
 */
export function checkApprovals(
  { tools, approvals }: Pick<ToolTurn, 'tools' | 'approvals'>,
  plans: readonly ServerPlan[],
  tenant: string,
  servers: ConfiguredServers,
): void {
  const declared = tools.flatMap((tool) => (tool.kind === 'mcp' ? tool.label : []))
  const known = new Set(declared.map((label) => label.toLowerCase()))
  const asking = new Set(plans.map(({ label, server }) => `${label.toLowerCase()} ${server}`))
  const missing = approvals.find(({ isApproved, label, question }) =>
    question === undefined
      ? isApproved && !known.has(label.toLowerCase())
      : !asking.has(`${label.toLowerCase()} ${question.server}`),
  )
  if (missing === undefined) {
    for (const answer of approvals)
      if (answer.question !== undefined) toQuestionAnswer(answer, answer.question)
    return
  }
  const shown = declared.filter((label) => !servers.isInternal(label))
  throw mcpErrors.unknown_mcp_server.with({ param: 'input' }, missing.label, shown, servers.labelsFor(tenant))
}

function planServer(
  request: McpToolRequest,
  tenant: string,
  config: McpConfig,
  servers: ConfiguredServers,
): ServerPlan {
  const { label, param, serverUrl } = request
  if (!LABEL.test(label)) throw mcpErrors.invalid_server_label.with({ param: `${param}.server_label` }, label)
  if (serverUrl === null) {
    const known = servers.find(label, tenant)
    if (known === null)
      throw mcpErrors.unknown_mcp_server.with({ param }, label, null, servers.labelsFor(tenant))
    return { ...known, label, request, builtIn: null }
  }
  const rules = rulesFor(config.clientServers, tenant)
  let url: URL
  try {
    url = readAllowedUrl(serverUrl, rules)
  } catch (error) {
    throw mcpErrors.invalid_server_url.with({ param: `${param}.server_url` }, label, (error as Error).message)
  }
  const target = { kind: 'http', url, protocol: 'auto', headers: readClientHeaders(request), rules } as const
  const key = connectionKey(tenant, url.href, target)
  const server = url.origin + url.pathname
  return {
    label,
    target,
    key,
    place: url.href,
    server,
    isHidden: false,
    config: null,
    request,
    builtIn: null,
  }
}

/** Null if it is not mapped, or not for this tenant. */
function planBuiltIn(
  request: BuiltInToolRequest,
  tenant: string,
  servers: ConfiguredServers,
): ServerPlan | null {
  const config = servers.builtIn(request.type)
  const known = config === null ? null : servers.find(config.server, tenant)
  if (config === null || known === null) return null
  return { ...known, label: config.server, isHidden: true, request: null, builtIn: { config, request } }
}

const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const MAX_VALUE = 16_384
const MAX_HEADERS = 64

/** Headers of framing, routing and the protocol. */
const REFUSED = new Set([
  'host',
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'content-length',
  'content-type',
  'content-encoding',
  'accept',
  'accept-encoding',
  'mcp-session-id',
  'mcp-protocol-version',
  'last-event-id',
  'mcp-method',
  'mcp-name',
])

/**
 * Validates the headers that a request sets for its tool server, and its authorization.
 *
 * @returns names in lower case
 * @throws GatewayError (400); its message contains no values
 */
function readClientHeaders({ label, headers, authorization, param }: McpToolRequest): Map<string, string> {
  const read = new Map<string, string>()
  const refuse = (field: string, problem: string) =>
    mcpErrors.invalid_mcp_header.with({ param: `${param}.${field}` }, label, problem)
  if ((headers?.size ?? 0) > MAX_HEADERS) throw refuse('headers', `more than ${MAX_HEADERS}`)
  for (const [given, value] of headers ?? []) {
    const name = given.toLowerCase()
    if (!NAME.test(name)) throw refuse('headers', 'a name is not a valid header name')
    if (REFUSED.has(name) || name.startsWith('mcp-param-')) throw refuse('headers', `'${name}' cannot be set`)
    if (read.has(name)) throw refuse('headers', `'${name}' is given twice`)
    if (!isValue(value)) throw refuse('headers', `the value of '${name}' cannot be sent`)
    read.set(name, value)
  }
  if (authorization === undefined || authorization === '') return read
  if (read.has('authorization')) throw refuse('authorization', 'authorization is given twice')
  if (!isValue(authorization)) throw refuse('authorization', 'the token cannot be sent')
  read.set('authorization', /^bearer /i.test(authorization) ? authorization : `Bearer ${authorization}`)
  return read
}

function isValue(value: string): boolean {
  return value.length <= MAX_VALUE && VALUE.test(value)
}
