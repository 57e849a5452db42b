/** `weir mcp check`: connects as the gateway does, lists and calls tools, and reports problems with the next step. */
import type { ListedTool } from '#kernel'
import { CliError, printable, printResult } from '../../../cli/output.ts'
import type { ServerConfig } from '../config.ts'
import { isReadOnly, type UnusableTool } from '../connection/read-tools.ts'
import { ServerConnection } from '../connection/server-connection.ts'
import { NOT_MCP, type ToolServerError, toToolServerError } from '../connection/tool-server-error.ts'
import { parseArguments } from '../tools/check-arguments.ts'
import { safeName } from '../tools/exposed-names.ts'
import { toModelSchema } from '../tools/tool-schema.ts'
import { type CheckTarget, readCheckTarget, type TargetOptions } from './check-target.ts'

interface CheckOptions extends TargetOptions {
  readonly call?: string
  readonly arguments: string
  readonly json?: boolean
}

interface Finding {
  readonly level: 'problem' | 'hint'
  readonly message: string
  readonly next: string
}

interface CheckReport {
  readonly isOk: boolean
  readonly transport: string | null
  readonly server: { readonly name: string; readonly version: string } | null
  readonly protocol: {
    /** `stateless`: protocol 2026-07-28 and later, without sessions. */
    readonly era: 'stateless' | 'sessions'
    readonly version: string
    /** All that the server supports; null if it does not say. */
    readonly supported: readonly string[] | null
  } | null
  /** Those that requests can use. */
  readonly tools: readonly ListedTool[]
  readonly unusable: readonly UnusableTool[]
  readonly call: {
    readonly tool: string
    readonly isError: boolean
    readonly text: string
    readonly durationMs: number
  } | null
  readonly findings: readonly Finding[]
}

const SHOWN_OUTPUT = 500
const quiet = { debug() {}, info() {}, warn() {}, error() {}, child: () => quiet }

export async function checkServer(place: string, options: CheckOptions): Promise<void> {
  const input = parseArguments(options.arguments)
  if (typeof input === 'string') throw new CliError(`--arguments ${input}`)
  const report = await check(await readCheckTarget(place, options), options.call, input)
  printResult(options.json, report, () => render(place, report))
  if (!report.isOk) process.exitCode = 1
}

async function check(
  { target, config, server, refusal }: CheckTarget,
  name: string | undefined,
  input: Record<string, unknown>,
): Promise<CheckReport> {
  const findings: Finding[] = []
  let connection: ServerConnection | null = null
  let tools: readonly ListedTool[] = []
  let unusable: readonly UnusableTool[] = []
  let call: CheckReport['call'] = null
  try {
    connection = await ServerConnection.open(target, config.limits, quiet)
    const listed = await connection.tools()
    const excluded = excludedTools(listed, server)
    unusable = [...(await connection.unusableTools()), ...excluded]
    tools = listed.filter(({ name: tool }) => excluded.every((one) => one.name !== tool))
    findings.push(...checkTools(tools, unusable), ...checkNames(listed, server))
    const tool = chooseTool(tools, name, findings)
    if (tool !== null) call = await callOnce(connection, tool, input, config.limits.callMs, findings)
  } catch (error) {
    findings.push(explain(toToolServerError(error)))
  }
  if (refusal !== null)
    findings.push(
      hint(
        `requests cannot name this URL: ${refusal}`,
        'see plugins.mcp.clientServers, or add the server to plugins.mcp.servers',
      ),
    )
  await connection?.close()
  const isOk = findings.every(({ level }) => level !== 'problem')
  return {
    isOk,
    transport: connection?.transport ?? null,
    server: connection?.server ?? null,
    protocol: connection === null ? null : protocolOf(connection),
    tools,
    unusable,
    call,
    findings,
  }
}

function protocolOf({ protocolVersion, supportedVersions }: ServerConnection): CheckReport['protocol'] {
  const era = supportedVersions === null ? 'sessions' : 'stateless'
  return { era, version: protocolVersion, supported: supportedVersions }
}

/** Tools that the configuration excludes. */
function excludedTools(listed: readonly ListedTool[], server: ServerConfig | null): UnusableTool[] {
  return listed.flatMap(({ name }) => {
    if (server?.deniedTools.includes(name)) return [{ name, reason: 'deniedTools names it' }]
    const isAllowed = server?.allowedTools?.includes(name) ?? true
    return isAllowed ? [] : [{ name, reason: 'allowedTools does not name it' }]
  })
}

/** Names in the configuration that the server does not have. */
function checkNames(listed: readonly ListedTool[], server: ServerConfig | null): Finding[] {
  const known = new Set(listed.map(({ name }) => name))
  const missing = [...(server?.allowedTools ?? []), ...(server?.deniedTools ?? [])].filter(
    (name) => !known.has(name),
  )
  return missing.map((name) =>
    hint(`the configuration names '${name}', which the server does not have`, 'names are case-sensitive'),
  )
}

function chooseTool(
  tools: readonly ListedTool[],
  name: string | undefined,
  findings: Finding[],
): ListedTool | null {
  if (name !== undefined) {
    const found = tools.find((tool) => tool.name === name)
    if (found === undefined)
      findings.push(problem(`the server has no tool '${name}'`, 'names are case-sensitive'))
    return found ?? null
  }
  const safe = tools.find((tool) => isReadOnly(tool) && !needsArguments(tool))
  if (safe === undefined && tools.length > 0)
    findings.push(
      hint(
        'no tool was called: none is declared read-only without required arguments',
        "select one: --call TOOL --arguments '{…}'",
      ),
    )
  return safe ?? null
}

function needsArguments({ inputSchema: { required } }: ListedTool): boolean {
  return Array.isArray(required) && required.length > 0
}

async function callOnce(
  connection: ServerConnection,
  tool: ListedTool,
  input: Record<string, unknown>,
  timeoutMs: number,
  findings: Finding[],
): Promise<CheckReport['call']> {
  const startedMs = performance.now()
  const { signal } = new AbortController()
  const { text, isError } = await connection.call(tool.name, input, { signal, timeoutMs })
  if (isError) findings.push(problem(`the call of '${tool.name}' failed`, 'see its result above'))
  const durationMs = Math.round(performance.now() - startedMs)
  return { tool: tool.name, isError, text: text.slice(0, SHOWN_OUTPUT), durationMs }
}

function checkTools(tools: readonly ListedTool[], unusable: readonly UnusableTool[]): Finding[] {
  if (tools.length === 0)
    return unusable.length === 0
      ? [problem('the server has no tools', 'it may need other credentials')]
      : [problem('the gateway can use none of the tools', 'see the reasons above')]
  const rewritten = tools.filter(({ inputSchema }) => toModelSchema(inputSchema).parameters !== inputSchema)
  const renamed = tools.filter(({ name }) => safeName(name) !== name)
  const silent = tools.filter(({ description }) => description === null || description === '')
  return [
    ...hintAbout(renamed, 'renamed for models', 'names of up to 64 letters, digits, - and _ are kept'),
    ...hintAbout(
      rewritten,
      'models get the alternatives of its schema as optional properties',
      'vendors reject anyOf, oneOf, allOf, not, enum and $ref at the top of a schema',
    ),
    ...hintAbout(silent, 'no description', 'models choose tools by their description'),
  ]
}

function hintAbout(tools: readonly ListedTool[], what: string, next: string): Finding[] {
  const names = tools.map(({ name }) => name).join(', ')
  return tools.length === 0 ? [] : [hint(`${names}: ${what}`, next)]
}

function hint(message: string, next: string): Finding {
  return { level: 'hint', message, next }
}

function problem(message: string, next: string): Finding {
  return { level: 'problem', message, next }
}

function explain({ type, code, message }: ToolServerError): Finding {
  if (/CERT|SIGNATURE/.test(message)) return problem(message, 'set caFile of the server in the configuration')
  if (message === NOT_MCP) return problem(message, OTHER_PATH)
  const next =
    type === 'http_error' ? 'check the address, and that the server runs' : 'see the log of the server'
  return problem(message, NEXT_STEPS.get(code) ?? next)
}

const OTHER_PATH = 'try another path, such as /mcp or /sse'

const NEXT_STEPS: ReadonlyMap<number, string> = new Map([
  [401, 'pass a token: --token-env VARIABLE, or headers, tokenFile or oauth in the configuration'],
  [403, 'the credentials have no access, or lack a scope'],
  [404, OTHER_PATH],
  [405, OTHER_PATH],
  [301, 'the server redirects: use the final URL'],
  [302, 'the server redirects: use the final URL'],
  [307, 'the server redirects: use the final URL'],
  [308, 'the server redirects: use the final URL'],
])

function render(place: string, report: CheckReport): string {
  const { isOk, transport, server, protocol, tools, unusable, call, findings } = report
  const lines = [place]
  if (server !== null) lines.push(`  server     ${server.name} ${server.version}, over ${transport}`)
  if (protocol !== null) {
    const others = protocol.supported?.filter((version) => version !== protocol.version) ?? []
    const also = others.length === 0 ? '' : `; it supports ${others.join(', ')} too`
    lines.push(`  protocol   ${protocol.version}, ${ERAS[protocol.era]}${also}`)
  }
  for (const [i, { name, description }] of tools.entries()) {
    const about = (description ?? '').split('\n')[0].slice(0, 80)
    lines.push(`  ${i === 0 ? 'tools     ' : '          '} ${name}${about === '' ? '' : `: ${about}`}`)
  }
  for (const [i, { name, reason }] of unusable.entries())
    lines.push(`  ${i === 0 ? 'not usable' : '          '} ${name}: ${reason}`)
  if (call !== null)
    lines.push(`  called     ${call.tool} in ${call.durationMs} ms`, `  result     ${call.text}`)
  for (const { level, message, next } of findings) lines.push(`${level}: ${message}`, `  ${next}`)
  lines.push(isOk ? 'the gateway can use this server' : 'the gateway cannot use this server')
  // Texts of the server must not control the terminal.
  return lines.map((line) => printable(line).replaceAll('\n', ' ')).join('\n')
}

const ERAS = { stateless: 'stateless (server/discover)', sessions: 'with sessions (initialize)' }
