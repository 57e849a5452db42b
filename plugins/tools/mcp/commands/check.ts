/** `weir mcp check`: connects as the gateway does, lists and calls tools, and reports problems with the next step. */
import { CliError } from '../../../cli/cli-error.ts'
import { printable } from '../../../cli/table.ts'
import { isReadOnly, type ServerTool } from '../connection/read-tools.ts'
import { ServerConnection } from '../connection/server-connection.ts'
import { type ToolServerError, toToolServerError } from '../connection/tool-server-error.ts'
import { safeName } from '../tools/exposed-names.ts'
import { parseArguments } from '../tools/run-tool.ts'
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
  readonly tools: readonly ServerTool[]
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
  if (input === null) throw new CliError('--arguments must be a JSON object')
  const report = await check(await readCheckTarget(place, options), options.call, input)
  console.log(options.json === true ? JSON.stringify(report, null, 2) : render(place, report))
  if (!report.isOk) process.exitCode = 1
}

async function check(
  { target, config, refusal }: CheckTarget,
  name: string | undefined,
  input: Record<string, unknown>,
): Promise<CheckReport> {
  const findings: Finding[] = []
  let connection: ServerConnection | null = null
  let tools: readonly ServerTool[] = []
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
  tools: readonly ServerTool[],
  name: string | undefined,
  findings: Finding[],
): ServerTool | null {
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

function needsArguments({ inputSchema: { required } }: ServerTool): boolean {
  return Array.isArray(required) && required.length > 0
}

async function callOnce(
  connection: ServerConnection,
  tool: ServerTool,
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

function checkTools(tools: readonly ServerTool[]): Finding[] {
  if (tools.length === 0) return [problem('the server has no tools', 'it may need other credentials')]
  const renamed = tools.filter(({ name }) => safeName(name) !== name)
  const silent = tools.filter(({ description }) => description === null || description === '')
  return [
    ...hintAbout(renamed, 'renamed for models', 'names of up to 64 letters, digits, - and _ are kept'),
    ...hintAbout(silent, 'no description', 'models choose tools by their description'),
  ]
}

function hintAbout(tools: readonly ServerTool[], what: string, next: string): Finding[] {
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
