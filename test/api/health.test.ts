import { expect, test } from 'vitest'
import { dropAnswer, jsonAnswer, rawAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const none = { workers: [] }

test.each(['/health', '/liveness'])('GET %s is 200 OK, with and without workers', async (path) => {
  for (const options of [none, {}]) {
    const reply = await (await openFleet(options)).get(path)
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toMatch(/^text\/plain/)
    expect(await reply.text()).toBe('OK')
  }
})

test('GET /readiness is 503 with a reason while no worker is ready', async () => {
  const reply = await (await openFleet(none)).get('/readiness')
  expect(reply.status).toBe(503)
  expect(await reply.json()).toMatchObject({ status: 'not ready', reason: 'insufficient healthy workers' })
})

test('GET /readiness counts workers, and becomes 503 when the last one is deleted', async () => {
  const fleet = await openFleet({ workers: [{}, {}] })
  const ready = await fleet.get('/readiness')
  expect(ready.status).toBe(200)
  expect(await ready.json()).toEqual({
    status: 'ready',
    healthy_workers: 2,
    total_workers: 2,
    configured_workers: 2,
    pending_workers: 0,
  })
  const { workers } = (await (await fleet.get('/workers')).json()) as { workers: { id: string }[] }
  for (const { id } of workers) await fetch(`${fleet.gateway.url}/workers/${id}`, { method: 'DELETE' })
  await expect.poll(async () => (await fleet.get('/readiness')).status).toBe(503)
  expect((await fleet.get('/health')).status).toBe(200)
})

test('GET /health_generate passes on the response of the first ready worker', async () => {
  const fleet = await openFleet({ workers: [{}, {}] })
  const answer = jsonAnswer({ ok: 1 }, { status: 202, headers: { etag: 'yes' } })
  fleet.workers[0].script('GET /health_generate', answer)
  for (let turn = 0; turn < 3; turn += 1) {
    const reply = await fleet.get('/health_generate')
    expect(reply.status).toBe(202)
    expect(reply.headers.get('etag')).toBe('yes')
    expect(await reply.json()).toEqual({ ok: 1 })
  }
  expect(fleet.workers[1].requests).toEqual([])
})

test('GET /health_generate: concurrent and recent requests share one generation', async () => {
  const fleet = await openFleet({ plugins: { health: { generateReuseMs: 60_000 } } })
  const release = Promise.withResolvers<void>()
  fleet.workers[0].script('GET /health_generate', async () => {
    await release.promise
    return jsonAnswer({ ok: 1 })
  })
  const first = new AbortController()
  const left = fetch(`${fleet.gateway.url}/health_generate`, { signal: first.signal })
  await fleet.workers[0].received('GET /health_generate', 1)
  const others = Array.from({ length: 20 }, () => fleet.get('/health_generate'))
  first.abort()
  await expect(left).rejects.toThrow()
  release.resolve()
  for (const reply of await Promise.all(others)) expect(await reply.json()).toEqual({ ok: 1 })
  expect((await fleet.get('/health_generate')).status).toBe(200)
  expect(fleet.workers[0].requestsTo('GET /health_generate')).toHaveLength(1)
})

test.each([404, 405, 501])(
  'GET /health_generate is a chat of one token if the engine answers %i',
  async (status) => {
    const fleet = await openFleet({ plugins: { health: { generateReuseMs: 0 } } })
    const [worker] = fleet.workers
    worker.script('GET /health_generate', rawAnswer('', { status }))
    worker.script('POST /v1/chat/completions', jsonAnswer({ choices: [] }))
    expect((await fleet.get('/health_generate')).status).toBe(200)
    const [chat] = worker.requestsTo('POST /v1/chat/completions')
    expect(chat.header('content-type')).toBe('application/json')
    expect(chat.json()).toMatchObject({ messages: [{ role: 'user' }], max_tokens: 1, stream: false })
    worker.script('POST /v1/chat/completions', rawAnswer('generation thread died', { status: 404 }))
    await expect.poll(async () => (await fleet.get('/health_generate')).status).toBe(404)
  },
)

test('GET /health_generate passes on the failure status of a worker', async () => {
  const fleet = await openFleet()
  fleet.workers[0].script('GET /health_generate', rawAnswer('sick', { status: 503 }))
  const reply = await fleet.get('/health_generate')
  expect(reply.status).toBe(503)
  expect(await reply.text()).toBe('sick')
})

test('GET /health_generate is 503 no_workers without workers, 502 if the worker closes the connection', async () => {
  const empty = await (await openFleet(none)).get('/health_generate')
  expect(empty.status).toBe(503)
  expect(await empty.json()).toMatchObject({ error: { type: 'service_unavailable', code: 'no_workers' } })
  const fleet = await openFleet()
  fleet.workers[0].script('GET /health_generate', dropAnswer())
  expect((await fleet.get('/health_generate')).status).toBe(502)
})

test('GET /engine_metrics merges all workers into one text with a label for each', async () => {
  const fleet = await openFleet({ workers: [{ spec: { api_key: 'worker-key' } }, {}, {}] })
  const text = '# TYPE vllm:running gauge\nvllm:running{model="m"} 2\n'
  fleet.workers[0].script('GET /metrics', rawAnswer(text))
  fleet.workers[1].script('GET /metrics', rawAnswer('# TYPE vllm:running gauge\nvllm:running 3\n'))
  fleet.workers[2].script('GET /metrics', rawAnswer('<html>'))
  const reply = await fleet.get('/engine_metrics')
  expect(reply.status).toBe(200)
  expect(reply.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(await reply.text()).toBe(
    [
      '# TYPE vllm_running gauge',
      `vllm_running{model="m",worker_addr="${fleet.workers[0].url}"} 2`,
      `vllm_running{model="",worker_addr="${fleet.workers[1].url}"} 3`,
      '',
    ].join('\n'),
  )
  expect(fleet.workers[0].requestsTo('GET /metrics')[0].header('authorization')).toBe('Bearer worker-key')
})

test('GET /engine_metrics is 503 if no worker has readable metrics', async () => {
  for (const options of [none, {}]) {
    const reply = await (await openFleet(options)).get('/engine_metrics')
    expect(reply.status).toBe(503)
    expect(await reply.json()).toMatchObject({ error: { type: 'service_unavailable' } })
  }
})

test('the health routes never require a key', async () => {
  const fleet = await openFleet({ plugins: { auth: { apiKey: 'k', controlPlaneKeys: ['a:b:admin:c'] } } })
  fleet.workers[0].script('GET /metrics', rawAnswer('up 1\n'))
  for (const path of ['/health', '/liveness', '/readiness', '/health_generate', '/engine_metrics']) {
    expect((await fleet.get(path)).status).toBe(200)
  }
})
