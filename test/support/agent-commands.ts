/** Runs the agents of `test/parts`, unmodified and headless, each in a home folder of its own. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from './built-command.ts'

const PARTS = join(import.meta.dirname, '../parts/node_modules')
export const CLAUDE = join(PARTS, '.bin/claude')
export const CODEX = join(PARTS, '.bin/codex')
/** A tool server over standard input and output. */
const TOOL_SERVER = join(PARTS, '@modelcontextprotocol/server-everything/dist/index.js')

export const hasClaude = existsSync(CLAUDE)
export const hasCodex = existsSync(CODEX)

/** Long enough for a busy machine. */
const LIMIT_MS = 240_000

/** @throws with all output unless the command ends with 0 */
async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: Record<string, string>,
): Promise<string> {
  const child = spawn(command, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: cwd, ...env },
  })
  let stdout = ''
  let all = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    all += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    all += text
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${all}`)
  return stdout
}

export interface AgentResult {
  readonly session: string
  readonly text: string
}

/** Claude Code with the tool server `everything`, whose tools are deferred. */
export class ClaudeCode {
  readonly folder = makeFolder()

  constructor() {
    const servers = { everything: { command: process.execPath, args: [TOOL_SERVER, 'stdio'] } }
    writeFileSync(join(this.folder, 'mcp.json'), JSON.stringify({ mcpServers: servers }))
  }

  async run(baseUrl: string, prompt: string, session?: string): Promise<AgentResult> {
    const args = [
      ...['-p', prompt, '--model', 'claude-sonnet-4-5', '--output-format', 'json'],
      ...['--mcp-config', 'mcp.json', '--strict-mcp-config'],
      ...['--allowedTools', 'Write,Read,Edit,ToolSearch,mcp__everything', '--permission-mode', 'acceptEdits'],
      ...(session === undefined ? [] : ['--resume', session]),
    ]
    const out = await run(CLAUDE, args, this.folder, {
      ANTHROPIC_BASE_URL: baseUrl,
      ANTHROPIC_AUTH_TOKEN: 'agent-key',
      ENABLE_TOOL_SEARCH: 'true',
      MCP_TIMEOUT: '90000',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    })
    const { session_id, result, is_error } = JSON.parse(out) as Record<string, unknown>
    if (is_error !== false) throw new Error(out)
    return { session: String(session_id), text: String(result) }
  }
}

interface CodexModel {
  readonly name: string
  /** Its tools are called by code that it writes. */
  readonly writesCode: boolean
}

/** The models that Codex knows, the newest first. */
export function codexModels(): CodexModel[] {
  const env = { PATH: process.env.PATH, HOME: makeFolder() }
  const out = execFileSync(CODEX, ['debug', 'models', '--bundled'], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const { models } = JSON.parse(out) as { models: { slug: string; tool_mode?: string | null }[] }
  return models.map(({ slug, tool_mode: mode }) => ({ name: slug, writesCode: mode === 'code_mode_only' }))
}

/** Codex with the tool server `everything`, whose tools are a namespace. */
export class Codex {
  readonly folder = makeFolder()
  readonly #home = join(this.folder, '.codex')

  constructor(settings = '') {
    mkdirSync(this.#home)
    const server = `[mcp_servers.everything]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify([TOOL_SERVER, 'stdio'])}\nstartup_timeout_sec = 90\nrequired = true\n`
    writeFileSync(join(this.#home, 'config.toml'), `${settings}\n${server}`)
  }

  /** @param model as Codex knows it */
  async run(
    baseUrl: string,
    model: string,
    prompt: string,
    session?: string,
    options: readonly string[] = [],
  ): Promise<AgentResult> {
    const provider = `{ name = "weir", base_url = "${baseUrl}/v1", wire_api = "responses", env_key = "WEIR_API_KEY" }`
    const args = [
      'exec',
      ...(session === undefined ? [] : ['resume']),
      ...['--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', '-m', model],
      ...['-c', 'model_provider="weir"', '-c', `model_providers.weir=${provider}`, ...options],
      ...(session === undefined ? [] : [session]),
      prompt,
    ]
    const out = await run(CODEX, args, this.folder, { CODEX_HOME: this.#home, WEIR_API_KEY: 'agent-key' })
    const events = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, Record<string, unknown>>)
    const thread = events.find((event) => String(event.type) === 'thread.started')
    const said = events.findLast((event) => event.item?.type === 'agent_message')
    return { session: String(thread?.thread_id), text: String(said?.item.text) }
  }
}
