/** Examples of plugins as an author runs them: copied out of the package, with its test kit, and served from several threads. */
import { execFile } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { makeFolder, readyGateway, runCommand, stopCommands, until } from '../support/built-command.ts'
import { freePort } from '../support/free-port.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const examples = globSync('examples/*/test.ts', { cwd: ROOT }).map((file) => dirname(file).slice(9))
/** What the examples install beside the gateway. */
const CLIENTS = ['ollama', 'openai', '@anthropic-ai/sdk']

afterEach(stopCommands)

function copyExample(name: string): string {
  const folder = makeFolder()
  cpSync(join(ROOT, 'examples', name), folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  mkdirSync(join(folder, 'node_modules/@anthropic-ai'), { recursive: true })
  symlinkSync(ROOT, join(folder, 'node_modules/weir-gateway'))
  for (const client of CLIENTS)
    symlinkSync(join(ROOT, 'node_modules', client), join(folder, 'node_modules', client))
  return folder
}

/** Without the options of this test run, such as its loader. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(NODE_OPTIONS|VITEST|NODE_TEST)/.test(name)),
)

test('there are examples with tests', () => expect(examples.length).toBeGreaterThan(5))

test.each(examples)('%s: its test passes with the built package', async (name) => {
  const { stdout } = await run(process.execPath, ['--test', 'test.ts'], {
    cwd: copyExample(name),
    env,
  }).catch((error: { stdout: string; stderr: string }) => {
    throw new Error(error.stdout + error.stderr)
  })
  expect(stdout).toMatch(/^# fail 0$|^ℹ fail 0$/m)
})

test('the test in the guide passes', async () => {
  const guide = readFileSync(join(ROOT, 'docs/guide/plugin-examples.md'), 'utf8')
  const [, text] = /^## Tests$[\s\S]*?^```ts\n([\s\S]*?)^```$/m.exec(guide) as RegExpExecArray
  const folder = copyExample('response-cache')
  writeFileSync(join(folder, 'guide.ts'), text)
  const { stdout } = await run(process.execPath, ['--test', 'guide.ts'], { cwd: folder, env })
  expect(stdout).toMatch(/^# pass 1$|^ℹ pass 1$/m)
})

/** Serves the configuration of an example with two data threads, and its engine on a free port. */
async function serveExample(name: string) {
  const folder = copyExample(name)
  const file = join(folder, 'weir.yaml')
  const text = readFileSync(file, 'utf8').replaceAll('9001', String(await freePort()))
  writeFileSync(file, text.replace('threads: 1', 'threads: 2\n  warmUp: false'))
  const flags = ['--port', '0', '--metrics-port', '0', '--grace-ms', '0']
  const gateway = await readyGateway(runCommand(['serve', '--config', file, ...flags]))
  await until(async () => (await gateway.get('/readiness')).status === 200)
  const post = (path: string, body: object) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer weir-demo-key' },
      body: JSON.stringify(body),
    })
  return { post }
}

const chat = (content: string) => ({ model: 'sim-1', messages: [{ role: 'user', content }] })

describe('served as in the README', () => {
  test('ollama-front streams lines of JSON', async () => {
    const { post } = await serveExample('ollama-front')
    const response = await post('/api/chat', chat('Hello'))
    const lines = (await response.text())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    expect(lines.at(-1)).toMatchObject({ done: true, done_reason: 'stop' })
  })

  test.each([
    ['response-cache', ['Hello', 'Hello']],
    [
      'semantic-cache',
      ['what is the capital of france in europe', 'what is the capital of france in europe please'],
    ],
  ])('%s answers from memory once a thread has the answer, streamed or not', async (name, questions) => {
    const { post } = await serveExample(name)
    const seen: (string | null)[] = []
    // Threads do not share answers; both have one after a few requests.
    for (let count = 0; count < 12; count++) {
      const stream = count % 4 > 1
      const response = await post('/v1/chat/completions', { ...chat(questions[count % 2]), stream })
      await response.text()
      seen.push(`${response.headers.get('x-cache')}${stream ? ' streamed' : ''}`)
    }
    expect(seen[0]).toBe('miss')
    expect(seen).toEqual(expect.arrayContaining(['hit', 'hit streamed']))
  })

  test('latency-policy picks on every thread', async () => {
    const { post } = await serveExample('latency-policy')
    for (let count = 0; count < 10; count++)
      expect((await post('/v1/chat/completions', chat('Hello'))).status).toBe(200)
  })
})
