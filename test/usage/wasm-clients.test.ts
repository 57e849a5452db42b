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
import {
  chatChunks,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { weir } from '../support/short-command.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const BUILD_LIMIT_MS = 300_000
/** Settings that an example requires. */
const SETTINGS: Readonly<Record<string, string>> = { 'wasm-auth': 'jwt_secret=example-secret' }

const examples = globSync('examples/wasm-*', { cwd: ROOT }).sort()
/** One example per language, found by a file of its toolchain. */
const oneOfEachLanguage = ['assembly', 'Cargo.toml', 'go.mod', 'module.wat'].flatMap((mark) =>
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

describe('official clients behind a module that rewrites streams', () => {
  let gateway: BuiltGateway
  let worker: ScriptedWorker

  beforeAll(async () => {
    const file = join(folder, 'redact.wasm')
    const built = await weir(['wasm', 'build', 'examples/wasm-redact-stream', '--out', file], { cwd: ROOT })
    if (built.code !== 0) throw new Error(built.err)
    worker = await startScriptedWorker()
    gateway = await startBuiltGateway({
      plugins: { wasm: { timeoutMs: 20_000, roots: [folder] } },
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
    const stream = client.chat.completions.stream({ model: 'test-model', messages: [] })
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
    const response = await gateway.send('POST', '/v1/chat/completions', { model: 'test-model', stream: true })
    const events = (await response.text()).split('\n\n')
    expect(events.splice(-2)).toEqual(['data: [DONE]', ''])
    for (const event of events) expect(JSON.parse(event.replace(/^data: /, ''))).toHaveProperty('choices')
    expect(events.join('')).not.toContain('alpha')
  })

  test('named events keep their names on the wire, pings too', async () => {
    worker.script('POST /v1/chat/completions', messageStream(['al', 'pha']))
    const response = await gateway.send('POST', '/v1/chat/completions', { model: 'test-model', stream: true })
    const events = (await response.text()).split('\n\n').slice(0, -1)
    for (const event of events) {
      const [, name, data] = event.match(/^event: (\S+)\ndata: (.*)$/) ?? []
      expect(JSON.parse(data)).toMatchObject({ type: name })
    }
    expect(events.filter((event) => event.startsWith('event: ping'))).toHaveLength(1)
  })

  test('the Anthropic client assembles a message with rewritten text', async () => {
    worker.script('POST /v1/chat/completions', messageStream(['say al', 'pha or alp', 'ine, al']))
    const message = await messages(gateway).stream(REQUEST).finalMessage()
    expect(message.content).toHaveLength(2)
    const [text, tool] = message.content
    if (text.type !== 'text' || tool.type !== 'tool_use') throw new Error('not the blocks that were sent')
    expect(text.text).toMatch(/^say (\S+) or alpine, al$/)
    expect(text.text).not.toContain('alpha')
    expect(tool).toMatchObject({ name: 'look', input: { at: 'alpha' } })
    expect(message).toMatchObject({ id: 'msg_1', stop_reason: 'end_turn', usage: { output_tokens: 7 } })
  })

  test('the Anthropic client receives every event by name and in order', async () => {
    worker.script('POST /v1/chat/completions', messageStream(['al', 'pha']))
    const seen: string[] = []
    for await (const event of messages(gateway).stream(REQUEST)) seen.push(event.type)
    const types = seen.filter((type, at) => type !== seen[at - 1])
    expect(types).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
  })
})

const REQUEST = { model: 'test-model', max_tokens: 64, messages: [{ role: 'user' as const, content: 'hi' }] }

/** The client's parser on the chat route, whose worker responds with Messages API events. */
function messages(gateway: BuiltGateway): Anthropic['messages'] {
  const toChat: typeof fetch = (input, init) =>
    fetch(String(input).replace('/v1/messages', '/v1/chat/completions'), init)
  return new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0, fetch: toChat }).messages
}

function messageStream(texts: readonly string[]) {
  const start = { id: 'msg_1', type: 'message', role: 'assistant', model: 'test-model', content: [] }
  const usage = { input_tokens: 3, output_tokens: 1 }
  const tool = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }
  const events: readonly { type: string; [member: string]: unknown }[] = [
    { type: 'message_start', message: { ...start, stop_reason: null, stop_sequence: null, usage } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'ping' },
    ...texts.map((text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })),
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: tool },
    {
      type: 'content_block_delta',
      index: 1,
      delta: { type: 'input_json_delta', partial_json: '{"at": "alpha"}' },
    },
    { type: 'content_block_stop', index: 1 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 7 },
    },
    { type: 'message_stop' },
  ]
  return streamAnswer(
    events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    { headers: { 'content-type': 'text/event-stream' } },
  )
}
