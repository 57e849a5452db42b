/** Every example runs as described in its README, from the build, on free ports. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { endChildren, endsWithTest } from '../support/child-processes.ts'
import { freePort } from '../support/free-port.ts'
import { valkeySkipReason } from '../support/valkey-server.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const COMMAND = join(ROOT, 'dist/plugins/cli.js')
const example = (path: string) => join(ROOT, 'examples', path)

const folders: string[] = []
afterEach(async () => {
  await endChildren()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** Starts `weir serve` on free ports. @returns the URL of the API and the output until it was ready */
async function startGateway(config: string, ...flags: string[]): Promise<{ url: string; output: string[] }> {
  const ports = ['--port', '0', '--metrics-port', '0', '--grace-ms', '0']
  const child = endsWithTest(
    spawn(process.execPath, [COMMAND, 'serve', '--config', config, ...ports, ...flags], {
      stdio: ['ignore', 'ignore', 'pipe'],
    }),
  )
  const output: string[] = []
  let url: string | undefined
  for await (const line of createInterface({ input: child.stderr })) {
    output.push(line)
    url ??= line.match(/^ {2}API\s+(http\S+)/)?.[1]
    // The last line of the ready block, or of the quick start if requested.
    if (flags.includes('--quick-start') ? line.includes('console.log') : /^ {2}plugins/.test(line)) break
  }
  if (url === undefined) throw new Error(`the gateway did not start:\n${output.join('\n')}`)
  child.stderr.resume()
  return { url, output }
}

async function waitUntilReady(url: string): Promise<void> {
  await expect.poll(async () => (await fetch(`${url}/readiness`)).status).toBe(200)
}

/** Copies the configuration of an example with its engine on a free port, without the two seconds of its warm-up. */
async function configOf(name: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-example-'))
  folders.push(folder)
  const file = join(folder, 'weir.yaml')
  const text = readFileSync(example(`${name}/weir.yaml`), 'utf8')
  expect(text).toContain('9001')
  const here = text
    .replaceAll('$path: ./', `$path: ${example(name)}/`)
    .replace('dir: .weir/data', `dir: ${join(folder, 'data')}`)
  const cold = `kernel:\n  warmUp: false\n${here.replace(/^kernel:\n/m, '')}`
  writeFileSync(file, cold.replaceAll('9001', String(await freePort())))
  return file
}

test('minimal: the curl line of the quick start streams an answer', async () => {
  const { url, output } = await startGateway(await configOf('minimal'), '--quick-start')
  await waitUntilReady(url)
  const curl = output.find((line) => line.trim().startsWith('curl '))
  const { stdout } = await run('sh', ['-c', `${curl} --silent --show-error --fail`])
  expect(stdout).toContain('data: [DONE]')
})

test('minimal: a response continues the previous one', async () => {
  const { url } = await startGateway(await configOf('minimal'))
  await waitUntilReady(url)
  const create = async (fields: object) => {
    const headers = { 'content-type': 'application/json', authorization: 'Bearer weir-demo-key' }
    const body = JSON.stringify({ model: 'sim-1', input: 'Hello', ...fields })
    return (await fetch(`${url}/v1/responses`, { method: 'POST', headers, body })).json() as Promise<
      Record<string, unknown>
    >
  }
  const first = await create({})
  const second = await create({ previous_response_id: first.id })
  expect([first.status, second.status, second.previous_response_id]).toEqual([
    'completed',
    'completed',
    first.id,
  ])
})

test('minimal: a changed file is applied while the gateway runs', async () => {
  const file = await configOf('minimal')
  const { url } = await startGateway(file)
  await waitUntilReady(url)
  const changed = readFileSync(file, 'utf8').replace('kernel:\n', 'kernel:\n  policy: random\n')
  writeFileSync(file, changed)
  const env = { ...process.env, WEIR_ADMIN_KEY: 'weir-demo-key' }
  const { stdout } = await run(process.execPath, [COMMAND, 'config', 'apply', '--gateway', url], { env })
  expect(stdout).toContain('kernel.policy')
})

test('openai-client: the official client lists models, completes, streams, calls a tool, aborts and embeds', async () => {
  const { url } = await startGateway(await configOf('minimal'))
  await waitUntilReady(url)
  const { stdout } = await run(process.execPath, [example('openai-client/client.mjs')], {
    env: { ...process.env, WEIR_URL: `${url}/v1` },
  })
  expect(stdout).toMatch(/^models: sim-1$/m)
  expect(stdout).toMatch(/^whole: \S+/m)
  expect(stdout).toMatch(/^streamed: [1-9]\d* chunks$/m)
  expect(stdout).toMatch(/^tool call: get_weather \{"city":/m)
  expect(stdout).toMatch(/^aborted: true$/m)
  expect(stdout).toMatch(/^embedding: 64 dimensions$/m)
})

test('two-workers: round robin gives each engine half of the requests', async () => {
  const ports = await Promise.all(Array.from({ length: 4 }, freePort))
  const env = { ...process.env, PORTS: ports.join() }
  const { stdout } = await run(process.execPath, [example('two-workers/run.mjs')], { env })
  expect(stdout.match(/: 10 of 20 requests$/gm)).toHaveLength(2)
})

test.skipIf(valkeySkipReason !== null)(
  'mesh: gateways share a key, and one is killed under load',
  async () => {
    const ports = await Promise.all(Array.from({ length: 9 }, freePort))
    const env = { ...process.env, PORTS: ports.join() }
    const { stdout } = await run(process.execPath, [example('mesh/run.mjs')], { env })
    expect(stdout).toMatch(/^gw-3 reads: written on gw-1$/m)
    expect(stdout).toMatch(/^answered while gw-2 was away: 60 of 60$/m)
    expect(stdout).toMatch(
      /^members: gw-1 Alive, gw-2 Down, gw-3 Alive\nmembers: gw-1 Alive, gw-2 Alive, gw-3 Alive$/m,
    )
    expect(stdout).toMatch(/^gw-2 reads: written on gw-1$/m)
  },
)

test.each(['20.20.2', '24.1.0'])('two-workers: Node %s is reported in one line', async (version) => {
  const pretend = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'${version}'})`
  const end = run(process.execPath, ['--import', pretend, example('two-workers/run.mjs')])
  await expect(end).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^Node 22 is needed, this is Node 2[04]\..*\n$/),
  })
})

test('custom-frontend: plain text in, plain text out, errors in its own format', async () => {
  const { url } = await startGateway(await configOf('custom-frontend'))
  await waitUntilReady(url)
  const talk = (model: string) =>
    fetch(`${url}/talk/${model}`, {
      method: 'POST',
      headers: { authorization: 'Bearer weir-demo-key' },
      body: 'How are you?',
    })
  const answer = await talk('sim-1')
  expect(answer.headers.get('content-type')).toContain('text/event-stream')
  const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('data: '))
  expect(lines.at(-1)).toBe('data: .')
  expect(lines.length).toBeGreaterThan(8)
  const unknown = await talk('missing')
  expect([unknown.status, await unknown.text()]).toEqual([404, expect.stringMatching(/^! .*missing/)])
})

test('custom-plugin: its hook counts requests and its route returns the count', async () => {
  const { url } = await startGateway(example('custom-plugin/weir.yaml'))
  await fetch(`${url}/health`)
  const response = await fetch(`${url}/visits/ada`)
  expect(await response.json()).toEqual({ message: 'Welcome, ada: 2 requests so far' })
  expect(response.headers.get('x-visits')).toBe('2')
})

test('observability: a request reports its timing and its events', async () => {
  const { url } = await startGateway(await configOf('observability'))
  await waitUntilReady(url)
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'x-request-id': 'try-1', 'x-weir-server-timing': '1' },
    body: JSON.stringify({ model: 'sim-1', messages: [{ role: 'user', content: 'hello' }] }),
  })
  expect(reply.headers.get('server-timing')).toContain('upstream;dur=')
  await reply.text()
  const outcomes = async () => {
    const shown = (await (await fetch(`${url}/debug/requests/try-1`)).json()) as {
      requests?: { attempts: { outcome: string }[] }[]
    }
    return shown.requests?.[0].attempts.map(({ outcome }) => outcome)
  }
  await expect.poll(outcomes).toEqual(['success'])
})

test('responses-mcp: mcp check can call both configured tool servers', async () => {
  const port = await freePort()
  const notes = spawn(process.execPath, [example('responses-mcp/notes.mjs')], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  endsWithTest(notes)
  await once(notes.stdout, 'data')
  const config = await configOf('responses-mcp')
  writeFileSync(config, readFileSync(config, 'utf8').replace('9200', String(port)))
  const check = async (...args: string[]) =>
    (await run(process.execPath, [COMMAND, 'mcp', 'check', ...args, '--config', config], { cwd: ROOT }))
      .stdout
  expect(await check('clock')).toMatch(
    /called {5}time_in in \d+ ms\n {2}result {5}\d\d:\d\d:\d\d\nthe gateway can use this server/,
  )
  const call = ['--call', 'add_note', '--arguments', '{"text":"hello"}']
  expect(await check('notes', ...call)).toContain('result     That makes 1.')
  expect(await check('notes')).toContain('result     hello')
})

test('every example has a README', () => {
  for (const folder of globSync('*', { cwd: example('') }))
    expect(existsSync(example(`${folder}/README.md`))).toBe(true)
})

const hasRealEngine = existsSync(example('real-engine/.venv'))
if (!hasRealEngine)
  console.info('real-engine is not tested: examples/real-engine/setup.sh has not been run here')

describe.runIf(hasRealEngine)('real-engine', () => {
  test('a real model streams its answer through the gateway', { timeout: 120_000 }, async () => {
    const port = await freePort()
    const env = { ...process.env, ENGINE_PORT: String(port) }
    endsWithTest(spawn(example('real-engine/serve.sh'), { env, stdio: 'ignore' }))
    const { url } = await startGateway(
      example('real-engine/weir.yaml'),
      '--worker-url',
      `http://127.0.0.1:${port}`,
    )
    await waitUntilReady(url)
    const { stdout } = await run(process.execPath, [example('real-engine/chat.mjs'), 'Say hello.'], {
      env: { ...process.env, WEIR_URL: `${url}/v1` },
    })
    expect(stdout.trim().length).toBeGreaterThan(5)
  })
})
