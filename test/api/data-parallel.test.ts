/** Data-parallel ranks as workers: one record per rank, one engine behind them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  chatCompletion,
  jsonAnswer,
  rawAnswer,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const CHAT = 'POST /v1/chat/completions'
const chat = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }

async function openEngine(ranks: number): Promise<ScriptedWorker> {
  const engine = await startScriptedWorker()
  closers.push(() => engine.close())
  engine.script('GET /server_info', jsonAnswer({ version: '0.5', model_path: 'test-model', dp_size: ranks }))
  return engine
}

async function openGateway(
  section: object = {},
  plugins: object = {},
  kernel: object = {},
): Promise<TestGateway> {
  const gateway = await startGateway({
    kernel: { auth: 'off', policy: 'round_robin', ...kernel },
    plugins: { health: {}, chat: {}, workers: { dpAware: true, ...section }, ...plugins },
  })
  closers.push(() => gateway.stop())
  return gateway
}

interface ResponseJson {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: responses of any shape
  readonly json: any
}

async function send(
  { url }: TestGateway,
  method: string,
  path: string,
  body?: object,
): Promise<ResponseJson> {
  const response = await fetch(url + path, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, json: text.startsWith('{') ? JSON.parse(text) : text }
}

/** Polls the worker list until it passes. */
async function until(
  gateway: TestGateway,
  passes: (workers: ResponseJson['json'][]) => boolean,
): Promise<ResponseJson['json'][]> {
  const endsAtMs = performance.now() + 30_000
  for (;;) {
    const { workers } = (await send(gateway, 'GET', '/workers')).json
    if (passes(workers)) return workers
    if (performance.now() > endsAtMs) throw new Error(`the list stays ${JSON.stringify(workers)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const allReady = (count: number) => (workers: ResponseJson['json'][]) =>
  workers.length === count && workers.every(({ status }) => status === 'ready')

test('an engine with 4 ranks is listed as 4 workers, and the id of the 202 is that of rank 0', async () => {
  const engine = await openEngine(4)
  const gateway = await openGateway()
  const { json } = await send(gateway, 'POST', '/workers', { url: engine.url, priority: 7 })
  const workers = await until(gateway, allReady(4))
  const byRank = workers.toSorted((a, b) => a.dp_rank - b.dp_rank)
  expect(byRank[0].id).toBe(json.worker_id)
  expect(byRank).toMatchObject(
    [0, 1, 2, 3].map((rank) => ({
      url: `${engine.url}@${rank}`,
      dp_base_url: engine.url,
      dp_rank: rank,
      dp_size: 4,
      priority: 7,
      model_id: 'test-model',
      is_healthy: true,
    })),
  )
  expect((await send(gateway, 'POST', '/workers', { url: `${engine.url}/` })).status).toBe(409)
})

test('requests go to the engine and carry the rank, in rotation', async () => {
  const engine = await openEngine(4)
  const gateway = await openGateway()
  await send(gateway, 'POST', '/workers', { url: engine.url })
  await until(gateway, allReady(4))
  for (let count = 0; count < 8; count++)
    expect((await send(gateway, 'POST', CHAT.slice(5), chat)).status).toBe(200)
  const ranks = engine
    .requestsTo(CHAT)
    .map((request) => (request.json() as Record<string, number>).data_parallel_rank)
  expect(ranks.toSorted()).toEqual([0, 0, 1, 1, 2, 2, 3, 3])
})

test('DELETE of one rank drains and removes all of them; a running stream of another rank finishes', async () => {
  const engine = await openEngine(4)
  const gateway = await openGateway()
  await send(gateway, 'POST', '/workers', { url: engine.url })
  const workers = await until(gateway, allReady(4))
  const gate = Promise.withResolvers<void>()
  engine.script(CHAT, sseAnswer(['{"a":1}', { until: gate.promise }, '[DONE]']))
  const stream = fetch(gateway.url + CHAT.slice(5), {
    method: 'POST',
    body: JSON.stringify({ ...chat, stream: true }),
  }).then((response) => response.text())
  await engine.received(CHAT)
  const idle = (await until(gateway, () => true)).find(({ load }) => load === 0)
  expect((await send(gateway, 'DELETE', `/workers/${idle.id}`)).status).toBe(202)
  const draining = await until(gateway, () => true)
  expect(draining.map(({ status }) => status)).toEqual(Array(4).fill('draining'))
  expect((await send(gateway, 'DELETE', `/workers/${workers[0].id}`)).status).toBe(202)
  gate.resolve()
  expect(await stream).toContain('[DONE]')
  await until(gateway, (left) => left.length === 0)
  expect(engine.requestsTo(CHAT).length).toBe(1)
})

test('PATCH applies to every rank, PUT is rejected', async () => {
  const engine = await openEngine(2)
  const gateway = await openGateway()
  await send(gateway, 'POST', '/workers', { url: engine.url, api_key: 'old-key' })
  const [, last] = await until(gateway, allReady(2))
  await send(gateway, 'PATCH', `/workers/${last.id}`, {
    priority: 9,
    labels: { zone: 'a' },
    api_key: 'new-key',
  })
  const patched = await until(gateway, (workers) => workers.every(({ priority }) => priority === 9))
  expect(patched.map(({ labels }) => labels.zone)).toEqual(['a', 'a'])
  // The list changes shortly before the workers that requests use.
  const lastKeys = async () => {
    for (let count = 0; count < 2; count++) await send(gateway, 'POST', CHAT.slice(5), chat)
    const keys = engine.requestsTo(CHAT).map((request) => request.header('authorization'))
    return keys.slice(-2)
  }
  await expect.poll(lastKeys).toEqual(Array(2).fill('Bearer new-key'))
  const put = await send(gateway, 'PUT', `/workers/${last.id}`, { url: engine.url })
  expect([put.status, put.json.error.code]).toEqual([400, 'replace_unsupported'])
})

test('an engine that does not report its ranks is not registered, and the record has the reason', async () => {
  const engine = await startScriptedWorker({ shape: 'vllm' })
  closers.push(() => engine.close())
  const gateway = await openGateway()
  const { json } = await send(gateway, 'POST', '/workers', { url: engine.url })
  const jobStatus = async () => (await send(gateway, 'GET', json.location)).json.job_status
  await expect.poll(async () => (await jobStatus())?.status).toBe('failed')
  expect((await jobStatus()).message).toContain('could not be discovered')
  const listed = (await send(gateway, 'GET', '/workers')).json.workers as { status: string }[]
  expect(listed.map(({ status }) => status)).toEqual(['pending'])
})

test('one health probe and its result apply to all ranks', async () => {
  const engine = await openEngine(4)
  const gateway = await openGateway({ health: { check_interval_secs: 0.2 } })
  await send(gateway, 'POST', '/workers', { url: engine.url })
  await until(gateway, allReady(4))
  engine.requests.length = 0
  engine.script('GET /health', rawAnswer('', { status: 503 }))
  await until(gateway, (workers) => workers.every(({ status }) => status === 'not_ready'))
  expect(engine.requestsTo('GET /health').length).toBeLessThan(8)
  engine.script('GET /health', rawAnswer(''))
  await until(gateway, allReady(4))
})

test('fan-outs call an engine once, and report the share of each rank', async () => {
  const engine = await openEngine(2)
  const gateway = await openGateway()
  engine.script('POST /flush_cache', rawAnswer(''))
  engine.script(
    'GET /v1/loads',
    jsonAnswer({
      dp_rank_count: 2,
      loads: [
        { dp_rank: 0, num_used_tokens: 10 },
        { dp_rank: 1, num_used_tokens: 32 },
      ],
    }),
  )
  await send(gateway, 'POST', '/workers', { url: engine.url })
  await until(gateway, allReady(2))
  expect((await send(gateway, 'POST', '/flush_cache')).json).toMatchObject({
    workers_flushed: 2,
    total_workers: 2,
  })
  expect(engine.requestsTo('POST /flush_cache').length).toBe(1)
  const { workers } = (await send(gateway, 'GET', '/get_loads')).json
  expect(workers.map(({ worker, load }: ResponseJson['json']) => [worker, load]).toSorted()).toEqual([
    [`${engine.url}@0`, 10],
    [`${engine.url}@1`, 32],
  ])
  expect(engine.requestsTo('GET /v1/loads').length).toBe(1)
})

test('with storage, ranks are restored with their ids, and ranks that the engine lost are removed for good', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'weir-ranks-'))
  closers.push(() => rm(dir, { recursive: true, force: true }))
  const engine = await openEngine(3)
  const first = await openGateway({}, { storage: { dir } })
  await send(first, 'POST', '/workers', { url: engine.url })
  const before = (await until(first, allReady(3))).map(({ id }) => id)
  await (closers.pop() as () => Promise<unknown>)()

  engine.script('GET /server_info', jsonAnswer({ version: '0.5', model_path: 'test-model', dp_size: 2 }))
  const second = await openGateway({}, { storage: { dir } })
  const after = await until(second, allReady(2))
  expect(after.map(({ id, dp_rank, dp_size }) => [id, dp_rank, dp_size])).toEqual([
    [before[0], 0, 2],
    [before[1], 1, 2],
  ])
  await (closers.pop() as () => Promise<unknown>)()

  const third = await openGateway({ dpAware: false }, { storage: { dir } })
  const [plain] = await until(third, (workers) => allReady(1)(workers) && workers[0].dp_rank === undefined)
  expect(plain).toMatchObject({ id: before[0], url: engine.url })
  engine.script(CHAT, jsonAnswer(chatCompletion('test-model')))
  expect((await send(third, 'POST', CHAT.slice(5), chat)).status).toBe(200)
  expect(engine.requestsTo(CHAT)[0].json()).not.toHaveProperty('data_parallel_rank')
})

test('a dead engine opens the breakers of all ranks', async () => {
  const engine = await openEngine(3)
  const gateway = await openGateway(
    { health: { disable_health_check: true } },
    {},
    {
      retry: { maxAttempts: 1 },
      breaker: { failureThreshold: 2 },
    },
  )
  await send(gateway, 'POST', '/workers', { url: engine.url })
  await until(gateway, allReady(3))
  await engine.close()
  const statuses: number[] = []
  // Round robin: the second failure of the first rank is the fourth in total, and opens the others.
  for (let count = 0; count < 4; count++)
    statuses.push((await send(gateway, 'POST', CHAT.slice(5), chat)).status)
  expect(statuses.every((status) => status >= 500)).toBe(true)
  const workers = await until(gateway, () => true)
  expect(workers.map(({ breaker }) => breaker)).toEqual(['open', 'open', 'open'])
})
