/** A protocol and its workers are a complete configuration: everything else that they need is enabled with defaults. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { makeFolder, runCommand, startSim, stopCommands } from '../support/built-command.ts'

afterEach(stopCommands)

const messages = [{ role: 'user', content: 'hi' }]
const CONFIGURATIONS = [
  {
    name: 'chat',
    path: '/v1/chat/completions',
    body: { messages },
    required: { generations: 'chat', auth: 'chat', policies: 'workers', 'http-workers': 'workers' },
  },
  {
    name: 'messages',
    path: '/v1/messages',
    body: { messages, max_tokens: 16 },
    required: { generations: 'messages', policies: 'workers' },
  },
  {
    name: 'responses',
    path: '/v1/responses',
    body: { input: 'hi' },
    required: { generations: 'responses', history: 'responses', storage: 'history' },
  },
]

describe.each(CONFIGURATIONS)('{ $name: {}, workers: … }', ({ name, path, body, required }) => {
  async function write() {
    const sim = await startSim('--model', 'demo')
    const folder = makeFolder()
    const file = join(folder, 'weir.json')
    const plugins = { [name]: {}, workers: { urls: [sim.url] } }
    writeFileSync(file, JSON.stringify({ kernel: { warmUp: false }, plugins }))
    return { file, env: { WEIR_DATA_DIR: '', WEIR_PORT: '0' }, folder }
  }

  test('serves requests', async () => {
    const { file, env, folder } = await write()
    const storage = name === 'responses' ? ['--data-dir', join(folder, 'data')] : []
    const gateway = runCommand(['serve', '--config', file, ...storage], env)
    const [, url] = await gateway.line(/^ {2}API\s+(http\S+)/)
    const send = () =>
      fetch(url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
        body: JSON.stringify({ model: 'demo', ...body }),
      })
    await expect.poll(async () => (await send()).status).toBe(200)
    const created = (await (await send()).json()) as { id: string }
    if (name !== 'responses') return
    expect((await fetch(`${url}/v1/responses/${created.id}`)).status).toBe(200)
  })

  test('weir plugins lists the plugins it enables, and which plugin requires them', async () => {
    const { file, env } = await write()
    const { stdout, code } = await runCommand(['plugins', '--config', file, '--no-cost', '--json'], env).ended
    expect(code).toBe(0)
    const rows = JSON.parse(stdout) as { name: string; isEnabled: boolean; requiredBy: string | null }[]
    const reasons = Object.fromEntries(
      rows.filter(({ isEnabled }) => isEnabled).map(({ name, requiredBy }) => [name, requiredBy]),
    )
    expect(reasons).toMatchObject({ [name]: null, workers: null, ...required })
  })
})
