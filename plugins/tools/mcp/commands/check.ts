/** `weir mcp check`: connects as the gateway does, lists and calls tools, and reports problems with the next step. */
import type { ListedTool } from '#kernel'
import { CliError, printable, printResult } from '../../../cli/output.ts'
import type { McpConfig } from '../config.ts'
import { isReadOnly } from '../connection/read-tools.ts'
import { ServerConnection } from '../connection/server-connection.ts'
import type { ServerTarget } from '../connection/server-target.ts'
import { type ToolServerError, toToolServerError } from '../connection/tool-server-error.ts'
import { parseArguments } from '../loop/run-tool.ts'
import { ANYWHERE, readServerUrl, type UnreachableByRule } from '../net/reach-rules.ts'
import { readTarget } from '../tools/configured-servers.ts'
import { safeName } from '../tools/exposed-names.ts'

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
  readonly tools: readonly ListedTool[]
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
  { target, config, refusal }: CheckTarget,
  name: string | undefined,
  input: Record<string, unknown>,
): Promise<CheckReport> {
  const findings: Finding[] = []
  let connection: ServerConnection | null = null
  let tools: readonly ListedTool[] = []
  let call: CheckReport['call'] = null
  try {
    connection = await ServerConnection.open(target, config.limits, quiet)
    tools = await connection.tools()
    findings.push(...checkTools(tools))
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
    tools,
    call,
    findings,
  }
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

function checkTools(tools: readonly ListedTool[]): Finding[] {
  if (tools.length === 0) return [problem('the server has no tools', 'it may need other credentials')]
  const renamed = tools.filter(({ name }) => safeName(name) !== name)
  const silent = tools.filter(({ description }) => description === null || description === '')
  return [
    ...hintAbout(renamed, 'renamed for models', 'names of up to 64 letters, digits, - and _ are kept'),
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

function explain({ code, message }: ToolServerError): Finding {
  return problem(message, NEXT_STEPS.get(code) ?? 'check the address, and that the server runs')
}

const NEXT_STEPS: ReadonlyMap<number, string> = new Map([
  [401, 'pass a token: --token-env VARIABLE, or headers in the configuration'],
  [403, 'the credentials have no access'],
  [404, 'try another path, such as /mcp or /sse'],
  [405, 'try another path, such as /mcp or /sse'],
  [307, 'the server redirects: use the final URL'],
  [308, 'the server redirects: use the final URL'],
])

function render(place: string, { isOk, transport, server, tools, call, findings }: CheckReport): string {
  const lines = [place]
  if (server !== null) lines.push(`  server     ${server.name} ${server.version}, over ${transport}`)
  for (const [i, { name, description }] of tools.entries()) {
    const about = (description ?? '').split('\n')[0].slice(0, 80)
    lines.push(`  ${i === 0 ? 'tools     ' : '          '} ${name}${about === '' ? '' : `: ${about}`}`)
  }
  if (call !== null)
    lines.push(`  called     ${call.tool} in ${call.durationMs} ms`, `  result     ${call.text}`)
  for (const { level, message, next } of findings) lines.push(`${level}: ${message}`, `  ${next}`)
  lines.push(isOk ? 'the gateway can use this server' : 'the gateway cannot use this server')
  // Texts of the server must not control the terminal.
  return lines.map((line) => printable(line).replaceAll('\n', ' ')).join('\n')
}

interface TargetOptions {
  readonly config?: string
  readonly tokenEnv?: string
  readonly headerEnv?: readonly string[]
}

interface CheckTarget {
  readonly target: ServerTarget
  readonly config: McpConfig
  /** Why requests cannot name this URL; null if they can, or for configured servers. */
  readonly refusal: string | null
}

/**
 * Reads the target: a URL with credentials from the environment, or a configured server.
 * @throws ConfigError for an invalid file, CliError for other problems
 */
async function readCheckTarget(place: string, options: TargetOptions): Promise<CheckTarget> {
  const config = await readSection(options.config)
  if (!/^https?:\/\//i.test(place)) {
    const server = config.servers.find(({ label }) => label.toLowerCase() === place.toLowerCase())
    if (server !== undefined) return { target: readTarget(server, place), config, refusal: null }
    const known = config.servers.map(({ label }) => label).join(', ')
    const next =
      options.config === undefined
        ? 'set its configuration file with --config'
        : `configured labels: ${known || 'none'}`
    throw new CliError(`'${place}' is neither a URL nor the label of a configured server\n  ${next}`)
  }
  if (!URL.canParse(place)) throw new CliError(`'${place}' is not a URL`)
  const headers = readHeaders(options)
  const target = { kind: 'http', url: new URL(place), protocol: 'auto', headers, rules: ANYWHERE } as const
  return { target, config, refusal: refusalOf(place, config) }
}

function refusalOf(place: string, { clientServers }: McpConfig): string | null {
  try {
    readServerUrl(place, clientServers)
    return null
  } catch (error) {
    return (error as UnreachableByRule).message
  }
}

/** @returns names in lower case */
function readHeaders({ tokenEnv, headerEnv = [] }: TargetOptions): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (const pair of headerEnv) {
    const at = pair.indexOf('=')
    if (at < 1) throw new CliError(`--header-env must be name=VARIABLE (got '${pair}')`)
    headers.set(pair.slice(0, at).toLowerCase(), readVariable('--header-env', pair.slice(at + 1)))
  }
  if (tokenEnv !== undefined) headers.set('authorization', `Bearer ${readVariable('--token-env', tokenEnv)}`)
  return headers
}

function readVariable(flag: string, name: string): string {
  const value = process.env[name]
  if (value === undefined || value === '') throw new CliError(`${flag}: the variable ${name} is not set`)
  return value
}

async function readSection(file: string | undefined): Promise<McpConfig> {
  const [{ loadConfig }, { pluginSchemas }] = await Promise.all([
    import('../../../cli/configuration/load.ts'),
    import('../../../cli/plugin-schemas.ts'),
  ])
  const { plugins } =
    file === undefined
      ? await loadConfig({ text: DEFAULTS, env: {}, pluginSchemas })
      : await loadConfig({ file, env: process.env, pluginSchemas })
  const section = plugins.mcp as McpConfig | undefined
  if (section === undefined)
    throw new CliError(`${file} does not enable the mcp plugin\n  add to it: plugins: { mcp: {} }`)
  return section
}

const DEFAULTS = JSON.stringify({ kernel: { auth: 'off' }, plugins: { mcp: {} } })
