/** Workers of a plugin's own connection mode, from the example: they are treated like HTTP workers. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import lineEngine from '../../examples/custom-engine/line-engine.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'

const ENGINE = fileURLToPath(new URL('../../examples/custom-engine/engine.mjs', import.meta.url))
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Engine {
  readonly url: string
  readonly process: ChildProcess
}

async function startEngine(): Promise<Engine> {
  const child = spawn(process.execPath, [ENGINE, '0', 'parrot'], { stdio: ['ignore', 'pipe', 'inherit'] })
  closers.push(() => kill(child))
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /listening on (\d+)/.exec(line)?.[1]
    if (port !== undefined) return { url: `lines://127.0.0.1:${port}`, process: child }
  }
  throw new Error('the engine did not start')
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}

interface Listed {
  readonly id: string
  readonly url: string
  readonly status: string
  readonly [member: string]: unknown
}

async function openGateway(workers: readonly object[], health: object = {}): Promise<TestGateway> {
  const gateway = await startGateway({
    kernel: { auth: 'off', policy: 'round_robin' },
    own: [lineEngine],
    plugins: {
      health: {},
      policies: {},
      chat: {},
      workers: { workers, health: { drain_settle_secs: 0, ...health } },
    },
  })
  closers.push(() => gateway.stop())
  await expect
    .poll(async () => (await listed(gateway)).filter(({ status }) => status === 'ready').length, {
      timeout: 30_000,
    })
    .toBe(workers.length)
  return gateway
}

const listed = async ({ url }: TestGateway) =>
  ((await (await fetch(`${url}/workers`)).json()) as { workers: Listed[] }).workers

const chat = ({ url }: TestGateway, stream = false) =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'parrot', stream, messages: [{ role: 'user', content: 'say it again' }] }),
  })
const textOf = async (reply: Response) =>
  ((await reply.json()) as { choices: { message: { content: string } }[] }).choices[0]?.message.content

test('a worker is described by its control, and serves chats, streamed and not', async () => {
  const { url } = await startEngine()
  const gateway = await openGateway([{ url }])
  expect(await listed(gateway)).toMatchObject([
    { url, connection_mode: 'lines', runtime_type: 'liner', models: [{ id: 'parrot' }], is_healthy: true },
  ])
  const whole = await chat(gateway)
  expect(whole.status).toBe(200)
  expect(await whole.json()).toMatchObject({
    object: 'chat.completion',
    model: 'parrot',
    choices: [{ message: { role: 'assistant', content: 'say it again' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 },
  })
  const stream = await (await chat(gateway, true)).text()
  const events = [...stream.matchAll(/^data: (.*)$/gm)].map(([, data]) => data)
  expect(events.at(-1)).toBe('[DONE]')
  const pieces = events.slice(0, -1).map((data) => JSON.parse(data).choices[0]?.delta?.content ?? '')
  expect(pieces.join('')).toBe('say it again')
  expect(pieces.filter(Boolean).length).toBe(3)
})

test('two engines share requests; after one dies, requests go to the other and it is marked failed', async () => {
  const engines = [await startEngine(), await startEngine()]
  const gateway = await openGateway(
    engines.map(({ url }) => ({ url, health: { failure_threshold: 1 } })),
    { check_interval_secs: 0.1, timeout_secs: 10 },
  )
  const byEngine = async () => {
    const page = await (await fetch(`${gateway.metricsUrl}`)).text()
    return page.match(/^weir_worker_selection_total\{.*$/gm) ?? []
  }
  for (let count = 0; count < 4; count++) expect(await textOf(await chat(gateway))).toBe('say it again')
  expect((await byEngine()).join('\n')).toContain('lines')
  await kill(engines[0].process)
  for (let count = 0; count < 6; count++) expect(await textOf(await chat(gateway))).toBe('say it again')
  await expect
    .poll(async () => (await listed(gateway)).map(({ status }) => status))
    .toEqual(['failed', 'ready'])
})

test('a deleted worker is drained and removed; the other continues', async () => {
  const engines = [await startEngine(), await startEngine()]
  const gateway = await openGateway(engines.map(({ url }) => ({ url })))
  const [first, second] = await listed(gateway)
  expect((await fetch(`${gateway.url}/workers/${first.id}`, { method: 'DELETE' })).status).toBe(202)
  await expect.poll(async () => (await listed(gateway)).map(({ url }) => url)).toEqual([second.url])
  expect((await chat(gateway)).status).toBe(200)
})

test('unsupported control calls report so and have no side effect', async () => {
  const { url } = await startEngine()
  const gateway = await openGateway([{ url }])
  const flushed = await fetch(`${gateway.url}/flush_cache`, { method: 'POST' })
  expect(await flushed.json()).toMatchObject({ status: 'success', total_http_workers: 0, total_workers: 1 })
  expect(await (await fetch(`${gateway.url}/get_loads`)).json()).toEqual({
    workers: [{ worker: url, load: -1 }],
  })
  for (const path of ['/engine_metrics', '/health_generate', '/get_model_info'])
    expect((await fetch(gateway.url + path)).status).toBe(503)
})

test('registration rejects a runtime of another mode and an unknown scheme', async () => {
  const gateway = await openGateway([])
  const register = async (body: object) => {
    const reply = await fetch(`${gateway.url}/workers`, { method: 'POST', body: JSON.stringify(body) })
    return { status: reply.status, json: await reply.json() }
  }
  expect(await register({ url: 'lines://127.0.0.1:9', runtime_type: 'vllm' })).toMatchObject({
    status: 400,
    json: { error: { code: 'invalid_field' } },
  })
  const unknown = await register({ url: 'words://127.0.0.1:9' })
  expect(unknown).toMatchObject({ status: 400, json: { error: { code: 'invalid_worker_url' } } })
  expect(JSON.stringify(unknown.json)).toContain('lines://')
})

test('a configured worker without a plugin for its scheme prevents the start, with the plugin to enable', async () => {
  const start = (workers: object) =>
    startGateway({ kernel: { auth: 'off' }, plugins: { 'http-workers': false, workers } })
  await expect(start({ urls: ['http://127.0.0.1:9'] })).rejects.toThrow('enable plugin http-workers')
  await expect(start({ urls: ['words://127.0.0.1:9'] })).rejects.toThrow(
    'no enabled plugin supports its scheme',
  )
})
