/** The bundled modules: built and checked by the command, and in front of the official clients. */
import { existsSync, globSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FailedBuild } from '../../plugins/wasm/project/build-result.ts'
import { reasonToSkip } from '../../wasm-sdk/fixtures/built-modules.ts'
import { type BuiltGateway, makeFolder, startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { chatAnswer } from '../support/chat-script.ts'
import {
  chatChunks,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { weir } from '../support/short-command.ts'
import { isThorough } from '../support/thorough.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const BUILD_LIMIT_MS = 300_000
/** Settings that an example requires. */
const SETTINGS: Readonly<Record<string, string>> = { 'wasm-auth': 'jwt_secret=example-secret' }

const examples = globSync('examples/wasm-*', { cwd: ROOT }).sort()
/** Files of the toolchains that a test of all of them uses; a crate takes Rust a quarter of a minute. */
const MARKS = isThorough ? ['assembly', 'Cargo.toml', 'go.mod', 'module.wat'] : ['assembly', 'module.wat']
const oneOfEachLanguage = MARKS.flatMap((mark) =>
  examples.filter((example) => existsSync(join(ROOT, example, mark))).slice(0, 1),
)
let folder: string

beforeAll(() => {
  folder = makeFolder()
})
afterAll(stopCommands)

describe('every bundled example', () => {
  test('exists', () => expect(examples.length).toBeGreaterThanOrEqual(7))

  // The tests of the SDK build all examples without the command.
  test.each(oneOfEachLanguage)(
    '%s builds and passes the check with the command',
    async (example) => {
      const file = join(folder, `${basename(example)}.wasm`)
      const built = await weir(['wasm', 'build', example, '--out', file, '--json'], { cwd: ROOT })
      if (built.code !== 0) {
        const reason = reasonToSkip(JSON.parse(built.out) as FailedBuild)
        if (reason === null) throw new Error(built.out)
        return console.warn(`${example} is skipped: ${reason}`)
      }
      const setting = SETTINGS[basename(example)]
      const more = setting === undefined ? [] : ['--config', setting]
      // The Go runtime imports WASI and makes the module large.
      const isGo = basename(example) === 'wasm-go'
      if (isGo) {
        const config = join(folder, 'wasi.yaml')
        writeFileSync(config, 'plugins: { wasm: { allowWasi: true } }\n')
        more.push('--wasi', '--gateway-config', config)
      }
      const checked = await weir(['wasm', 'check', file, '--json', ...more], { cwd: ROOT })
      const findings = isGo ? [{ code: 'large_module', level: 'warning' }] : []
      expect(JSON.parse(checked.out)).toMatchObject({ isOk: true, findings, format: 'core' })
      expect(checked.code).toBe(0)
    },
    BUILD_LIMIT_MS,
  )
})

describe('official clients behind a module that rewrites texts', () => {
  let gateway: BuiltGateway
  let worker: ScriptedWorker

  beforeAll(async () => {
    const file = join(folder, 'redact.wasm')
    const built = await weir(['wasm', 'build', 'examples/wasm-redact-stream', '--out', file], { cwd: ROOT })
    if (built.code !== 0) throw new Error(built.err)
    worker = await startScriptedWorker()
    gateway = await startBuiltGateway({
      plugins: { messages: {}, wasm: { timeoutMs: 20_000, roots: [folder] } },
      workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'test-model' }] }],
    })
    const args = ['wasm', 'add', file, '--config', 'secrets=alpha,größe', '--gateway', gateway.url]
    const added = await weir(args)
    if (added.code !== 0) throw new Error(added.err)
  }, BUILD_LIMIT_MS)

  afterAll(() => worker?.close())

  test('the OpenAI client reads every chunk without the secrets and is otherwise unaffected', async () => {
    const texts = ['the key is al', 'pha, its ', 'grö', 'ße is alp', 'ine 😀', ' al']
    worker.script('POST /v1/chat/completions', sseAnswer(chatChunks('test-model', texts)))
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 })
    const stream = client.chat.completions.stream({ model: 'test-model', messages: REQUEST.messages })
    const ids = new Set<string>()
    stream.on('chunk', ({ id }) => ids.add(id))
    const { choices } = await stream.finalChatCompletion()
    expect(choices[0].message.content).toMatch(/^the key is (\S+), its (\S+) is alpine 😀 al$/)
    expect(choices[0].message.content).not.toMatch(/alpha|größe/)
    expect(choices[0].finish_reason).toBe('stop')
    expect(ids).toEqual(new Set(['chatcmpl-scripted']))
  })

  test('each event is complete on the wire, and the end marker comes from the gateway', async () => {
    worker.script('POST /v1/chat/completions', sseAnswer(chatChunks('test-model', ['al', 'pha', ' al'])))
    const response = await gateway.send('POST', '/v1/chat/completions', { ...REQUEST, stream: true })
    const events = (await response.text()).split('\n\n')
    expect(events.splice(-2)).toEqual(['data: [DONE]', ''])
    for (const event of events) expect(JSON.parse(event.replace(/^data: /, ''))).toHaveProperty('choices')
    expect(events.join('')).not.toContain('alpha')
  })

  test('the Anthropic client assembles a message with rewritten text and arguments', async () => {
    const call = { id: 'call_1', name: 'look', arguments: '{"at": "alpha"}' }
    worker.script(
      'POST /v1/chat/completions',
      chatAnswer({ content: 'say alpha or alpine, al', tool_calls: [call] }),
    )
    const client = new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 })
    const message = await client.messages.stream(REQUEST).finalMessage()
    const [text, tool] = message.content
    if (text.type !== 'text' || tool.type !== 'tool_use') throw new Error('not the blocks that were sent')
    expect(text.text).toBe('say [redacted] or alpine, al')
    expect(tool).toMatchObject({ name: 'look', input: { at: '[redacted]' } })
    expect(message).toMatchObject({ stop_reason: 'tool_use', usage: { output_tokens: 5 } })
  })
})

const REQUEST = { model: 'test-model', max_tokens: 64, messages: [{ role: 'user' as const, content: 'hi' }] }
