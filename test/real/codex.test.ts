/** The Codex command line, unmodified and headless: one task with a shell tool, over responses of the built gateway. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { makeFolder, startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { CHAT, says } from '../support/chat-script.ts'
import { startScriptedWorker } from '../support/scripted-worker.ts'

const CODEX = join(import.meta.dirname, '../parts/node_modules', '.bin/codex')
const model = 'test-model'

afterAll(() => stopCommands())

interface AskedTool {
  readonly function: { readonly name: string }
}

/** The call of whichever shell this version of the client offers. */
function shellCall(tools: readonly AskedTool[], command: string) {
  const names = new Set(tools.map((tool) => tool.function.name))
  if (names.has('exec_command')) return { name: 'exec_command', arguments: JSON.stringify({ cmd: command }) }
  if (names.has('shell_command')) return { name: 'shell_command', arguments: JSON.stringify({ command }) }
  if (names.has('shell'))
    return { name: 'shell', arguments: JSON.stringify({ command: ['bash', '-lc', command] }) }
  throw new Error(`no shell among ${[...names].join(', ')}`)
}

test.skipIf(!existsSync(CODEX))(
  'Codex does a task with its shell (skipped where it is not installed)',
  { timeout: 60_000 },
  async () => {
    const worker = await startScriptedWorker({ models: [model] })
    const gateway = await startBuiltGateway({
      plugins: {
        generations: {},
        storage: { dir: makeFolder() },
        history: {},
        responses: {},
      },
      workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: model }] }],
    })
    const work = makeFolder()
    worker.script(CHAT, (request) => {
      const { messages, tools = [] } = request.json() as {
        messages: { role: string }[]
        tools?: AskedTool[]
      }
      const isDone = messages.some(({ role }) => role === 'tool')
      const said = isDone
        ? says('The file is written.')
        : says({ tool_calls: [{ id: 'call_1', ...shellCall(tools, 'echo from-codex > made.txt') }] })
      return typeof said === 'function' ? said(request) : said
    })
    const provider = `{ name = "weir", base_url = "${gateway.url}/v1", wire_api = "responses", env_key = "WEIR_CODEX_KEY" }`
    const args = [
      'exec',
      '--skip-git-repo-check',
      '--dangerously-bypass-approvals-and-sandbox',
      '-C',
      work,
      '-m',
      model,
      '-c',
      'model_provider="weir"',
      '-c',
      `model_providers.weir=${provider}`,
      'Write from-codex into made.txt',
    ]
    const running = promisify(execFile)(CODEX, args, {
      env: { PATH: process.env.PATH, HOME: work, CODEX_HOME: makeFolder(), WEIR_CODEX_KEY: 'none' },
      timeout: 50_000,
    })
    running.child.stdin?.end()
    const { stdout } = await running
    expect(stdout).toContain('The file is written.')
    expect(readFileSync(join(work, 'made.txt'), 'utf8')).toBe('from-codex\n')
    await worker.close()
  },
)
