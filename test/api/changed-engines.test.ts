/** Engines that die, recover, or are restarted with another model at the same URL. */
import { afterEach, describe, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  chatCompletion,
  jsonAnswer,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

let gateway: TestGateway
let engine: ScriptedWorker
afterEach(async () => {
  await gateway?.stop()
  await engine?.close()
})

const listing = (id: string, length: number) =>
  jsonAnswer({ object: 'list', data: [{ id, object: 'model', owned_by: 'vllm', max_model_len: length }] })

test('the models and context lengths of a changed engine are those of its worker after the next probe', async () => {
  engine = await startScriptedWorker({ shape: 'vllm' })
  engine.script('GET /v1/models', listing('first', 4_096))
  const health = { check_interval_secs: 1 }
  const workers = { urls: [engine.url], health }
  gateway = await startGateway({ plugins: { auth: {}, health: {}, chat: {}, workers } })
  const models = async () => {
    const { workers } = (await (await fetch(`${gateway.url}/workers`)).json()) as {
      workers: { id: string; status: string; models: { id: string; context_length: number }[] }[]
    }
    return workers.map(({ models }) => models.map(({ id, context_length }) => [id, context_length]))
  }
  await expect.poll(models).toEqual([[['first', 4_096]]])
  const probes = () => engine.requests.filter(({ path }) => path === '/health').length
  const before = probes()
  await expect.poll(probes).toBeGreaterThan(before + 1)
  engine.script('GET /v1/models', listing('first', 8_192))
  await expect.poll(models).toEqual([[['first', 8_192]]])
  engine.script('GET /v1/models', listing('second', 8_192))
  await expect.poll(models).toEqual([[['second', 8_192]]])
})

describe('under traffic, at the default interval of probes', () => {
  /** Far below the interval; the exact times are in the test of the health checks. */
  const LIMIT_MS = 30_000

  async function open(): Promise<void> {
    engine = await startScriptedWorker({ shape: 'vllm', models: ['first'] })
    gateway = await startGateway({
      plugins: { auth: {}, health: {}, chat: {}, messages: {}, workers: { urls: [engine.url] } },
    })
    await expect.poll(() => chat('first')).toBe(200)
  }

  async function chat(model: string): Promise<number> {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] })
    const response = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', body })
    await response.arrayBuffer()
    return response.status
  }

  const statuses = async () => {
    const { workers } = (await (await fetch(`${gateway.url}/workers`)).json()) as {
      workers: { status: string }[]
    }
    return workers.map(({ status }) => status)
  }

  /** Milliseconds until the predicate holds, with a request every 50 ms. */
  async function until(holds: () => Promise<boolean>): Promise<number> {
    const startedAtMs = performance.now()
    const traffic = setInterval(() => void chat('first').catch(() => {}), 50)
    await expect.poll(holds, { interval: 20 }).toBe(true)
    clearInterval(traffic)
    return performance.now() - startedAtMs
  }

  test('another model: the first one is 404 in the engine, and the new one is served', async () => {
    await open()
    engine.script('GET /v1/models', listing('second', 8_192))
    engine.script('POST /v1/chat/completions', (request) =>
      (request.json() as { model: string }).model === 'second'
        ? jsonAnswer(chatCompletion('second'))
        : jsonAnswer({ error: { message: 'The model `first` does not exist.' } }, { status: 404 }),
    )
    expect(await until(async () => (await chat('second')) === 200)).toBeLessThan(LIMIT_MS)
  })

  test.each([
    ['whole', '/v1/chat/completions', false],
    ['streamed', '/v1/chat/completions', true],
    ['translated', '/v1/messages', false],
  ])('another model that answers for the first one: %s answers name it', async (_kind, path, stream) => {
    await open()
    // The second list is what changes are compared with.
    const lists = () => engine.requests.filter(({ path }) => path === '/v1/models').length
    await expect.poll(lists).toBeGreaterThan(1)
    const chunk = { id: 'c', object: 'chat.completion.chunk', model: 'second' }
    const delta = { index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: 'stop' }
    engine.script('GET /v1/models', listing('second', 8_192))
    engine.script('POST /v1/chat/completions', (request) =>
      (request.json() as { stream?: boolean }).stream === true
        ? sseAnswer([`data: ${JSON.stringify({ ...chunk, choices: [delta] })}\n\n`, 'data: [DONE]\n\n'])
        : jsonAnswer(chatCompletion('second')),
    )
    const body = JSON.stringify({
      model: 'first',
      max_tokens: 9,
      stream,
      messages: [{ role: 'user', content: 'hi' }],
    })
    const response = await fetch(`${gateway.url}${path}`, { method: 'POST', body })
    expect(response.status).toBe(200)
    await response.arrayBuffer()
    await expect.poll(() => chat('second'), { timeout: LIMIT_MS }).toBe(200)
  })

  test('a dead engine is not ready, and ready again after its recovery', async () => {
    await open()
    const { port } = engine
    await engine.close()
    expect(await until(async () => (await statuses())[0] === 'not_ready')).toBeLessThan(LIMIT_MS)
    engine = await startScriptedWorker({ shape: 'vllm', models: ['first'], port })
    expect(await until(async () => (await chat('first')) === 200)).toBeLessThan(LIMIT_MS)
  })

  test('an engine whose generation has ended while its process lives', async () => {
    await open()
    engine.script('GET /health', jsonAnswer({ status: 'unavailable' }, { status: 503 }))
    engine.script('POST /v1/chat/completions', jsonAnswer({ error: 'stopped' }, { status: 404 }))
    expect(await until(async () => (await statuses())[0] === 'not_ready')).toBeLessThan(LIMIT_MS)
  })
})
