/** Claude Code, unmodified and headless, over a scripted chat worker. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { type ChatBody, chatEngine, toolResults } from '../support/chat-turns.ts'
import { type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
let worker: ScriptedWorker
afterEach(async () => {
  await stopCommands()
  await worker.close()
})

const PARTS = fileURLToPath(new URL('../parts', import.meta.url))
const CLAUDE = join(PARTS, 'node_modules', '.bin', 'claude')

test.skipIf(!existsSync(CLAUDE))(
  'Claude Code, headless, does a task with two tools over a chat worker',
  async () => {
    worker = await startScriptedWorker()
    const gateway = await startBuiltGateway({
      plugins: { auth: { apiKey: 'agent-key' }, messages: { models: { 'claude-*': 'test-model' } } },
      workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'test-model' }] }],
    })
    const home = mkdtempSync(join(tmpdir(), 'weir-agent-'))
    const file = join(home, 'note.txt')
    worker.script(
      CHAT,
      chatEngine((body) => {
        if (!body.tools?.some(({ function: { name } }) => name === 'Write')) return { text: 'A note' }
        switch (toolResults(body)) {
          case 0:
            return {
              reasoning: 'First the file.',
              call: { name: 'Write', input: { file_path: file, content: 'from the model' } },
            }
          case 1:
            return { text: 'Written.', call: { name: 'Read', input: { file_path: file } } }
          default:
            return { text: 'The note says what it should.' }
        }
      }),
    )
    const args = [
      '-p',
      'Write a note and read it.',
      '--model',
      'claude-sonnet-4-5',
      '--allowedTools',
      'Write,Read',
      '--permission-mode',
      'acceptEdits',
      '--output-format',
      'json',
    ]
    const child = spawn(CLAUDE, args, {
      cwd: home,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        HOME: home,
        ANTHROPIC_BASE_URL: gateway.url,
        ANTHROPIC_AUTH_TOKEN: 'agent-key',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        DISABLE_TELEMETRY: '1',
        DISABLE_AUTOUPDATER: '1',
        DISABLE_ERROR_REPORTING: '1',
      },
    })
    let out = ''
    child.stdout.on('data', (text: Buffer) => {
      out += text.toString()
    })
    child.stderr.on('data', (text: Buffer) => {
      out += text.toString()
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), 90_000)
    try {
      const [code] = (await once(child, 'close')) as [number | null]
      expect(code, out).toBe(0)
      expect(JSON.parse(out)).toMatchObject({ is_error: false, result: 'The note says what it should.' })
      expect(readFileSync(file, 'utf8')).toBe('from the model')
      const turns = worker.requestsTo(CHAT).map((request) => request.json() as ChatBody)
      expect(Math.max(...turns.map(toolResults))).toBe(2)
      expect(turns.some(({ stream }) => stream === true)).toBe(true)
      expect(JSON.stringify(turns)).not.toContain('x-anthropic-billing-header')
    } finally {
      clearTimeout(timer)
      child.kill('SIGKILL')
      rmSync(home, { recursive: true, force: true })
    }
  },
  120_000,
)
