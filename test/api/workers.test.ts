/** The /workers resource over real sockets. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  chatCompletion,
  jsonAnswer,
  rawAnswer,
  type ScriptedWorker,
  type ScriptedWorkerOptions,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

const KEY = 'wk-secret-1'
const UNKNOWN_ID = '0198f0c2-5a7e-7c31-9b42-0d6f7b1e2a90'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function openWorker(options: ScriptedWorkerOptions = {}): Promise<ScriptedWorker> {
  const worker = await startScriptedWorker(options)
  closers.push(() => worker.close())
  return worker
}

interface ResponseJson {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: responses of any shape
  readonly json: any
}

const ignored = (names: string) => `members_ignored; count=${names.split(' ').length}; names="${names}"`

class Api {
  readonly gateway: TestGateway
  constructor(gateway: TestGateway) {
    this.gateway = gateway
  }

  async send(method: string, path: string, body?: unknown): Promise<ResponseJson> {
    const response = await fetch(this.gateway.url + path, {
      method,
      ...(body !== undefined && {
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: text === '' ? null : JSON.parse(text),
    }
  }

  get = (path: string) => this.send('GET', path)
  post = (spec: unknown) => this.send('POST', '/workers', spec)

  /** Polls the record until it passes. */
  async until(id: string, passes: (reply: ResponseJson) => boolean): Promise<ResponseJson> {
    const endsAtMs = performance.now() + 30_000
    for (;;) {
      const reply = await this.get(`/workers/${id}`)
      if (passes(reply)) return reply
      if (performance.now() > endsAtMs) throw new Error(`the record stays ${reply.text}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  async register(spec: object): Promise<string> {
    const { json } = await this.post(spec)
    await this.until(
      json.worker_id,
      (reply) => reply.json.status === 'ready' && reply.json.job_status === undefined,
    )
    return json.worker_id
  }

  /** Resolves when no change is in progress. */
  settled = (id: string) => this.until(id, (reply) => reply.json.job_status === undefined)
  gone = (id: string) => this.until(id, (reply) => reply.status === 404)
}

/** @param workers the plugin's section */
async function openApi(workers: object = {}, plugins: object = {}): Promise<Api> {
  const gateway = await startGateway({
    kernel: { auth: 'off' },
    plugins: { health: {}, chat: {}, workers, ...plugins },
  })
  closers.push(() => gateway.stop())
  return new Api(gateway)
}

/** A port on which nothing listens. */
async function deadUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'hi' }] })
const errorOf = (reply: ResponseJson) => ({
  status: reply.status,
  type: reply.json.error.type,
  code: reply.json.error.code,
})

describe('POST /workers', () => {
  test('responds 202 at once with id, url and location, and the record is pending until the registration is done', async () => {
    const worker = await openWorker()
    const gate = Promise.withResolvers<void>()
    worker.script('GET /health', async () => {
      await gate.promise
      return rawAnswer('')
    })
    const api = await openApi()
    const reply = await api.post({ url: worker.url, priority: 70 })
    const { worker_id: id } = reply.json
    expect(reply.status).toBe(202)
    expect(reply.json).toEqual({
      status: 'accepted',
      worker_id: id,
      url: worker.url,
      location: `/workers/${id}`,
      message: expect.any(String),
    })
    expect(reply.headers.get('location')).toBe(`/workers/${id}`)
    const pending = await api.get(`/workers/${id}`)
    expect(pending.json).toMatchObject({
      id,
      url: worker.url,
      status: 'pending',
      is_healthy: false,
      load: 0,
      job_status: {
        job_type: 'AddWorker',
        worker_url: worker.url,
        status: 'processing',
        message: null,
        timestamp: expect.any(Number),
      },
    })
    expect((await api.get('/workers')).json).toMatchObject({ total: 1, workers: [{ id, status: 'pending' }] })
    gate.resolve()
    await api.settled(id)
    expect((await api.get('/workers')).json.workers[0].id).toBe(id)
  })

  test('the 202 does not wait for the worker', async () => {
    const api = await openApi()
    const tookMs: number[] = []
    for (let count = 0; count < 5; count++) {
      const url = await deadUrl()
      const startedAtMs = performance.now()
      expect((await api.post({ url })).status).toBe(202)
      tookMs.push(performance.now() - startedAtMs)
    }
    expect(Math.min(...tookMs)).toBeLessThan(1_000)
  })

  test('engine, models and context length of vllm are discovered; the record contains no secret', async () => {
    const worker = await openWorker({ shape: 'vllm', models: ['demo-7b'] })
    const api = await openApi()
    const id = await api.register({ url: worker.url, api_key: KEY, labels: { zone: 'a' } })
    const record = await api.get(`/workers/${id}`)
    expect(record.json).toEqual({
      id,
      model_id: 'demo-7b',
      url: worker.url,
      models: [
        {
          id: 'demo-7b',
          model_type: ['chat', 'completions', 'responses', 'tools'],
          context_length: 32768,
          created: 1_700_000_000,
        },
      ],
      worker_type: 'regular',
      connection_mode: 'http',
      apis: ['chat', 'completions', 'generate', 'embeddings', 'classify', 'rerank'],
      runtime_type: 'vllm',
      labels: expect.objectContaining({ zone: 'a', version: '0.11.0' }),
      traffic: expect.objectContaining({ requests: 0, last_error: null }),
      priority: 50,
      cost: 1,
      max_connection_attempts: 20,
      health: {
        timeout_secs: 5,
        check_interval_secs: 60,
        success_threshold: 2,
        failure_threshold: 3,
        disable_health_check: false,
        drain_settle_secs: 5,
      },
      is_healthy: true,
      status: 'ready',
      load: 0,
      breaker: 'closed',
    })
    expect(record.text).not.toContain(KEY)
    expect(worker.requestsTo('GET /v1/models')[0].header('authorization')).toBe(`Bearer ${KEY}`)
  })

  test('a worker that starts later is registered without another request', async () => {
    const api = await openApi()
    const url = await deadUrl()
    const { worker_id: id } = (await api.post({ url })).json
    expect((await api.get(`/workers/${id}`)).json.status).toBe('pending')
    await openWorker({ port: Number(new URL(url).port) })
    expect((await api.settled(id)).json.status).toBe('ready')
  })

  test('a worker that does not start leaves a failed job with the reason, and the id of the url is kept', async () => {
    const api = await openApi({ startupTimeoutSecs: 0.2 })
    const url = await deadUrl()
    const { worker_id: id } = (await api.post({ url, api_key: KEY })).json
    const failed = await api.until(id, (reply) => reply.json.job_status.status === 'failed')
    expect(failed.json).toMatchObject({ status: 'pending', is_healthy: false })
    expect(failed.json.job_status.message).toContain(`${url} did not become healthy within 0.2 s`)
    expect(failed.text).not.toContain(KEY)
    expect((await api.post({ url })).json.worker_id).toBe(id)
  })

  test('a second POST during the first gets the same id, and the latest specification applies', async () => {
    const worker = await openWorker()
    const gate = Promise.withResolvers<void>()
    worker.once('GET /health', async () => {
      await gate.promise
      return rawAnswer('')
    })
    const api = await openApi()
    const first = await api.post({ url: worker.url, priority: 1 })
    const second = await api.post({ url: worker.url, priority: 2 })
    expect(second.status).toBe(202)
    expect(second.json.worker_id).toBe(first.json.worker_id)
    const record = await api.settled(first.json.worker_id)
    gate.resolve()
    expect(record.json).toMatchObject({ status: 'ready', priority: 2 })
  })

  test('a registered url is a conflict with url and id', async () => {
    const worker = await openWorker()
    const api = await openApi()
    const id = await api.register({ url: worker.url, api_key: KEY })
    const reply = await api.post({ url: worker.url, api_key: KEY })
    expect(errorOf(reply)).toEqual({ status: 409, type: 'conflict', code: 'worker_already_exists' })
    expect(reply.json.error.message).toContain(worker.url)
    expect(reply.json.error.message).toContain(id)
    expect(reply.text).not.toContain(KEY)
  })

  test('another spelling of a registered url is the same worker', async () => {
    const worker = await openWorker()
    const api = await openApi()
    await api.register({ url: `${worker.url}/` })
    for (const url of [worker.url, `${worker.url}/v1`, `${worker.url}//`])
      expect(errorOf(await api.post({ url }))).toMatchObject({ status: 409, code: 'worker_already_exists' })
  })

  test('engine, models and context length of sglang are discovered', async () => {
    const worker = await openWorker({ shape: 'sglang', models: ['demo-7b'] })
    const api = await openApi()
    const id = await api.register({ url: worker.url })
    expect((await api.get(`/workers/${id}`)).json).toMatchObject({
      runtime_type: 'sglang',
      model_id: 'demo-7b',
      models: [{ id: 'demo-7b', context_length: 32768 }],
      labels: { version: '0.5.3', tp_size: '1' },
    })
  })

  test('connection, retry and bootstrap settings are kept and returned unchanged', async () => {
    const worker = await openWorker()
    const api = await openApi()
    const own = {
      bootstrap_port: 8998,
      bootstrap_host: '10.0.0.9',
      load_monitor_interval_secs: 5,
      http_pool: { pool_max_idle_per_host: 2, timeout_secs: 60 },
      resilience: { max_retries: 2, cb_failure_threshold: 3, retryable_status_codes: [502] },
    }
    const id = await api.register({ url: worker.url, ...own })
    expect((await api.get(`/workers/${id}`)).json).toMatchObject(own)
    await api.send('PATCH', `/workers/${id}`, { priority: 2 })
    expect((await api.settled(id)).json).toMatchObject({ ...own, priority: 2 })
  })

  test('a base url that ends in /v1 gets no second one, in probes, discovery and requests', async () => {
    const worker = await openWorker({ models: ['demo-7b'] })
    const api = await openApi()
    await api.register({ url: `${worker.url}/v1` })
    expect((await api.send('POST', '/v1/chat/completions', chat('demo-7b'))).status).toBe(200)
    worker.script('POST /generate', jsonAnswer({ text: 'native routes are beside the API' }))
    expect((await api.send('POST', '/generate', { text: 'hi' })).status).toBe(200)
    expect(worker.requestsTo('GET /v1/models').length).toBeGreaterThan(0)
    expect(worker.requestsTo('GET /health').length).toBeGreaterThan(0)
    expect(worker.requests.filter(({ path }) => /\/v1\/(v1|health|server_info)/.test(path))).toEqual([])
  })

  test.each([
    ['{}', 'invalid_field'],
    ['{"url":', 'json_parse_error'],
    ['', 'json_parse_error'],
    ['[]', 'invalid_field'],
    ['{"url":7}', 'invalid_field'],
    ['{"url":""}', 'invalid_worker_url'],
    ['{"url":"host:8000"}', 'invalid_worker_url'],
    ['{"url":"HTTP://host:8000"}', 'invalid_worker_url'],
    ['{"url":"ftp://host"}', 'invalid_worker_url'],
    ['{"url":"http://h","worker_type":"Regular"}', 'invalid_field'],
    ['{"url":"http://h","runtime_type":"Tensor RT"}', 'invalid_field'],
    ['{"url":"http://h","runtime_type":"vllm","runtime":"vllm"}', 'duplicate_field'],
    ['{"url":"http://h","priority":-1}', 'invalid_field'],
    ['{"url":"http://h","priority":1.5}', 'invalid_field'],
    ['{"url":"http://h","cost":-0.1}', 'invalid_field'],
    ['{"url":"http://h","cost":1e999}', 'invalid_field'],
    ['{"url":"http://h","resilience":{"max_retries":0}}', 'invalid_field'],
    ['{"url":"http://h","resilience":{"initial_backoff_ms":2,"max_backoff_ms":1}}', 'invalid_resilience'],
    ['{"url":"http://h","labels":{"a":1}}', 'invalid_field'],
    ['{"url":"http://h","models":[{}]}', 'invalid_field'],
    ['{"url":"http://h","health":{"timeout_secs":-1}}', 'invalid_field'],
    ['{"url":"http://h","health":{"timeout_secs":0.5}}', 'invalid_field'],
    [`{"url":"http://h","api_key":"${KEY} \\n"}`, 'invalid_field'],
  ])('%s is a bad request', async (body, code) => {
    const api = await openApi()
    const reply = await api.post(body)
    expect(errorOf(reply)).toEqual({ status: 400, type: 'bad_request', code })
    expect(reply.text).not.toContain(KEY)
    expect((await api.get('/workers')).json.total).toBe(0)
  })

  test('null members count as absent, unknown ones are named, and both names of the runtime work', async () => {
    const worker = await openWorker()
    const api = await openApi()
    const reply = await api.post({
      url: worker.url,
      runtime: 'mlx',
      priority: null,
      labels: null,
      models: null,
      health: { timeout: 1 },
      api_key: null,
      some_day: { x: 1 },
    })
    expect(reply.headers.get('x-weir-warning')).toBe(ignored('health.timeout some_day'))
    const { json } = await api.until(reply.json.worker_id, (now) => now.json.status === 'ready')
    expect(json).toMatchObject({ runtime_type: 'mlx', priority: 50, model_id: 'test-model' })
    expect(json).not.toHaveProperty('some_day')
  })

  test('the scheme decides the connection mode, whatever mode is given', async () => {
    const api = await openApi({}, { grpc: {}, generations: {}, tokenizers: {}, parsers: {} })
    const reply = await api.post({ url: 'grpc://127.0.0.1:9', connection_mode: 'http' })
    expect(reply.status).toBe(202)
    expect((await api.get(`/workers/${reply.json.worker_id}`)).json.connection_mode).toBe('grpc')
  })

  test('a scheme without an enabled plugin is rejected with the plugin to enable', async () => {
    const api = await openApi()
    const reply = await api.post({ url: 'grpc://127.0.0.1:9' })
    expect(errorOf(reply)).toEqual({ status: 501, type: 'not_implemented', code: 'transport_missing' })
    expect(reply.json.error.message).toContain('enable plugin grpc')
    expect((await api.get('/workers')).json.total).toBe(0)
  })

  test.each([
    ['zmq', 'field \'connection_mode\' must be one of http (got "zmq")'],
    ['HTTP', 'field \'connection_mode\' must be one of http (got "HTTP")'],
    ['', 'field \'connection_mode\' must be one of http (got "")'],
    ['grpc', 'field \'connection_mode\' must be one of http (got "grpc"); enable plugin grpc for it'],
  ])('connection mode %j is none of the registered ones, whichever way it is sent', async (mode, message) => {
    const worker = await openWorker()
    const api = await openApi()
    const id = await api.register({ url: worker.url, connection_mode: 'http' })
    const refusals = [
      await api.post({ url: 'http://127.0.0.1:9', connection_mode: mode }),
      await api.send('PUT', `/workers/${id}`, { url: worker.url, connection_mode: mode }),
      await api.send('PATCH', `/workers/${id}`, { priority: 7, connection_mode: mode }),
    ]
    for (const reply of refusals) {
      expect(errorOf(reply)).toEqual({ status: 400, type: 'bad_request', code: 'invalid_field' })
      expect(reply.json.error).toMatchObject({ message, param: 'connection_mode' })
    }
    expect((await api.get('/workers')).json).toMatchObject({ total: 1, workers: [{ id, priority: 50 }] })
    expect((await api.send('PATCH', `/workers/${id}`, { connection_mode: 'http' })).status).toBe(202)
  })

  test('a configured worker with an unknown connection mode prevents the start', async () => {
    const workers = [{ url: 'http://127.0.0.1:9' }, { url: 'http://127.0.0.1:8', connection_mode: 'zmq' }]
    await expect(openApi({ workers })).rejects.toThrow(
      'plugins.workers.workers.1.connection_mode must be one of http (got "zmq")',
    )
  })

  test('a worker without health checks is ready at once and never probed', async () => {
    const worker = await openWorker()
    const api = await openApi({ health: { check_interval_secs: 0.05 } })
    await api.register({ url: worker.url, health: { disable_health_check: true } })
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(worker.requestsTo('GET /health')).toEqual([])
  })
})

describe('GET /workers', () => {
  test('lists in order of registration with counts; the model filter supports aliases and wildcards', async () => {
    const api = await openApi({ modelAliases: { short: 'm-a' } })
    const workers = await Promise.all(['m-a', 'm-b', 'm-c'].map((model) => openWorker({ models: [model] })))
    const specs = [
      { url: workers[0].url },
      { url: workers[1].url, worker_type: 'prefill' },
      { url: workers[2].url, models: [] },
    ]
    for (const spec of specs) await api.register(spec)
    const all = (await api.get('/workers')).json
    expect(all.workers.map((record: { url: string }) => record.url)).toEqual(specs.map((spec) => spec.url))
    expect(all.total).toBe(3)
    expect(all.stats).toMatchObject({ prefill_count: 1, decode_count: 0, regular_count: 2 })
    expect(all.workers[2]).not.toHaveProperty('models')
    expect(all.workers[2]).not.toHaveProperty('model_id')
    const ofA = (await api.get('/workers?model=short')).json
    expect(ofA.workers.map((record: { url: string }) => record.url)).toEqual([specs[0].url, specs[2].url])
    expect(ofA.stats).toMatchObject({ prefill_count: 0, decode_count: 0, regular_count: 2 })
    expect((await api.get('/workers?model=m-b')).json.total).toBe(2)
  })

  test('the model filter omits pending workers whose models are unknown', async () => {
    const api = await openApi()
    const silent = 'http://127.0.0.1:9'
    expect((await api.send('POST', '/workers', { url: silent })).status).toBe(202)
    expect((await api.get('/workers')).json.total).toBe(1)
    expect((await api.get('/workers?model=m')).json.total).toBe(0)
    await api.send('POST', '/workers', { url: `${silent}1`, models: [{ id: 'm' }] })
    expect((await api.get('/workers?model=m')).json.total).toBe(1)
  })

  test('no workers is an empty list', async () => {
    const api = await openApi()
    expect(await api.get('/workers')).toMatchObject({
      status: 200,
      json: { workers: [], total: 0, stats: { prefill_count: 0, decode_count: 0, regular_count: 0 } },
    })
  })
})

describe('ids', () => {
  test.each(['GET', 'PATCH', 'PUT', 'DELETE'])('%s: not a UUID is 400, unknown is 404', async (method) => {
    const api = await openApi()
    const body = method === 'PUT' ? { url: 'http://h' } : method === 'PATCH' ? {} : undefined
    const bad = await api.send(method, '/workers/not-a-uuid', body)
    expect(errorOf(bad)).toEqual({ status: 400, type: 'bad_request', code: 'invalid_worker_id' })
    const unknown = await api.send(method, `/workers/${UNKNOWN_ID}`, body)
    expect(errorOf(unknown)).toEqual({ status: 404, type: 'not_found', code: 'worker_not_found' })
  })
})

describe('PATCH /workers/{worker_id}', () => {
  test('changes only the given members: labels and health merge, the rest is kept', async () => {
    const worker = await openWorker()
    const api = await openApi()
    const id = await api.register({
      url: worker.url,
      bootstrap_port: 9000,
      labels: { zone: 'a', rack: '1' },
      health: { failure_threshold: 7 },
    })
    const before = (await api.get(`/workers/${id}`)).json
    const reply = await api.send('PATCH', `/workers/${id}`, {
      priority: 9,
      cost: 2.5,
      labels: { rack: '2', row: 'x' },
      api_key: KEY,
      health: { timeout_secs: 2 },
      url: 'http://other',
    })
    expect(reply.status).toBe(202)
    expect(reply.headers.get('x-weir-warning')).toBe(ignored('url'))
    expect(reply.json).toEqual({ status: 'accepted', worker_id: id, message: expect.any(String) })
    const after = await api.settled(id)
    expect(after.json).toEqual({
      ...before,
      priority: 9,
      cost: 2.5,
      labels: { ...before.labels, rack: '2', row: 'x' },
      health: { ...before.health, timeout_secs: 2 },
    })
    expect(after.text + reply.text).not.toContain(KEY)
    expect((await api.send('PATCH', `/workers/${id}`, { priority: null })).status).toBe(202)
    expect((await api.send('PATCH', `/workers/${id}`, {})).status).toBe(202)
    expect((await api.settled(id)).json).toEqual(after.json)
  })

  test('a rotated key is used from the next request on', async () => {
    const worker = await openWorker()
    const api = await openApi()
    const id = await api.register({ url: worker.url, api_key: 'old-key' })
    await api.send('PATCH', `/workers/${id}`, { api_key: KEY })
    await api.settled(id)
    expect((await api.send('POST', '/v1/chat/completions', chat('test-model'))).status).toBe(200)
    const [request] = worker.requestsTo('POST /v1/chat/completions')
    expect(request.header('authorization')).toBe(`Bearer ${KEY}`)
  })

  test('wrong types are a bad request and change nothing', async () => {
    const worker = await openWorker()
    const api = await openApi()
    const id = await api.register({ url: worker.url })
    for (const body of [
      '{',
      '{"priority":"high"}',
      '{"labels":{"a":null}}',
      '{"cost":-1}',
      '{"cost":1e999}',
      '{"health":{"success_threshold":1.5}}',
    ]) {
      expect(await api.send('PATCH', `/workers/${id}`, body)).toMatchObject({ status: 400 })
    }
    expect((await api.get(`/workers/${id}`)).json.priority).toBe(50)
  })

  test('disabling health checks makes a worker ready that was not', async () => {
    const worker = await openWorker()
    const api = await openApi({ health: { check_interval_secs: 0.02 } })
    const id = await api.register({ url: worker.url })
    worker.script('GET /health', rawAnswer('', { status: 500 }))
    await api.until(id, ({ json }) => json.status === 'not_ready')
    await api.send('PATCH', `/workers/${id}`, { health: { disable_health_check: true } })
    expect((await api.settled(id)).json.status).toBe('ready')
  })
})

describe('PUT /workers/{worker_id}', () => {
  test('resets members that are not given, discovers again, and keeps id and requests in flight', async () => {
    const worker = await openWorker({ models: ['first'] })
    const api = await openApi()
    const id = await api.register({ url: worker.url, priority: 9, labels: { zone: 'a' }, api_key: KEY })
    const gate = Promise.withResolvers<void>()
    worker.once('POST /v1/chat/completions', async () => {
      await gate.promise
      return jsonAnswer(chatCompletion('first'))
    })
    const running = api.send('POST', '/v1/chat/completions', chat('first'))
    await worker.received('POST /v1/chat/completions')
    worker.script('GET /v1/models', jsonAnswer({ data: [{ id: 'second', owned_by: 'vllm' }] }))
    const reply = await api.send('PUT', `/workers/${id}`, { url: worker.url })
    expect(reply.json).toEqual({ status: 'accepted', worker_id: id, message: expect.any(String) })
    const record = (await api.settled(id)).json
    expect(record).toMatchObject({
      id,
      priority: 50,
      model_id: 'second',
      runtime_type: 'vllm',
      status: 'ready',
      load: 1,
    })
    expect(record.labels).not.toHaveProperty('zone')
    gate.resolve()
    expect((await running).status).toBe(200)
    await api.until(id, ({ json }) => json.load === 0)
    await api.send('POST', '/v1/chat/completions', chat('second'))
    const [, last] = worker.requestsTo('POST /v1/chat/completions')
    expect(last.header('authorization')).toBeUndefined()
  })

  test('PUT with another url is rejected and changes nothing', async () => {
    const worker = await openWorker()
    const api = await openApi()
    const id = await api.register({ url: worker.url, priority: 9 })
    for (const url of [`${worker.url}/`, 'http://127.0.0.1:1']) {
      const reply = await api.send('PUT', `/workers/${id}`, { url })
      expect(errorOf(reply)).toEqual({ status: 400, type: 'bad_request', code: 'url_change_unsupported' })
    }
    expect((await api.get(`/workers/${id}`)).json.priority).toBe(9)
  })

  test('PUT and PATCH of an unfinished registration restart it under the same id', async () => {
    const api = await openApi()
    const url = await deadUrl()
    const { worker_id: id } = (await api.post({ url })).json
    expect((await api.send('PATCH', `/workers/${id}`, { priority: 7 })).status).toBe(202)
    expect((await api.get(`/workers/${id}`)).json).toMatchObject({ status: 'pending', priority: 7 })
    expect((await api.send('PUT', `/workers/${id}`, { url, cost: 3 })).status).toBe(202)
    expect((await api.get(`/workers/${id}`)).json).toMatchObject({ status: 'pending', priority: 50, cost: 3 })
    const elsewhere = await api.send('PUT', `/workers/${id}`, { url: `${url}/x` })
    expect([elsewhere.status, elsewhere.json.error.code]).toEqual([400, 'url_change_unsupported'])
  })

  test('PUT on a worker that does not respond fails in the job and keeps the old record', async () => {
    const worker = await openWorker()
    const api = await openApi({ startupTimeoutSecs: 0.2 })
    const id = await api.register({ url: worker.url, priority: 9 })
    worker.script('GET /health', rawAnswer('', { status: 500 }))
    await api.send('PUT', `/workers/${id}`, { url: worker.url })
    const { json } = await api.until(id, (reply) => reply.json.job_status?.status === 'failed')
    expect(json).toMatchObject({ priority: 9, status: 'ready', job_status: { job_type: 'AddWorker' } })
  })

  test('PUT fails if a change was applied while it was prepared', async () => {
    const worker = await openWorker()
    const api = await openApi()
    const id = await api.register({ url: worker.url })
    const gate = Promise.withResolvers<void>()
    worker.script('GET /health', async () => {
      await gate.promise
      return rawAnswer('')
    })
    await api.send('PUT', `/workers/${id}`, { url: worker.url, priority: 3 })
    await api.send('PATCH', `/workers/${id}`, { priority: 4 })
    await api.until(id, ({ json }) => json.priority === 4)
    gate.resolve()
    const { json } = await api.until(id, (reply) => reply.json.job_status?.status === 'failed')
    expect(json.priority).toBe(4)
    expect(json.job_status.message).toContain('changed')
  })
})

describe('DELETE /workers/{worker_id}', () => {
  test('no new request reaches the worker, a running stream finishes, and the worker is removed once idle', async () => {
    const worker = await openWorker()
    const api = await openApi()
    const id = await api.register({ url: worker.url })
    const gate = Promise.withResolvers<void>()
    worker.script('POST /v1/chat/completions', sseAnswer(['{"a":1}', { until: gate.promise }, '[DONE]']))
    const stream = fetch(`${api.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...chat('test-model'), stream: true }),
    }).then((response) => response.text())
    await worker.received('POST /v1/chat/completions')
    const reply = await api.send('DELETE', `/workers/${id}`)
    expect(reply.status).toBe(202)
    expect(reply.json).toEqual({ status: 'accepted', worker_id: id, message: expect.any(String) })
    expect((await api.get(`/workers/${id}`)).json).toMatchObject({
      status: 'draining',
      is_healthy: false,
      load: 1,
      job_status: { job_type: 'RemoveWorker' },
    })
    expect((await api.send('DELETE', `/workers/${id}`)).status).toBe(202)
    expect((await api.send('POST', '/v1/chat/completions', chat('test-model'))).status).toBe(503)
    expect((await api.get('/readiness')).status).toBe(503)
    gate.resolve()
    expect(await stream).toContain('[DONE]')
    await api.gone(id)
    expect((await api.send('DELETE', `/workers/${id}`)).status).toBe(404)
    expect((await api.get('/workers')).json.total).toBe(0)
    expect(worker.requestsTo('POST /v1/chat/completions').length).toBe(1)
  })

  test('a busy worker is removed at the drain deadline, and its stream still finishes', async () => {
    const worker = await openWorker()
    const api = await openApi({ health: { drain_settle_secs: 0.2 } })
    const id = await api.register({ url: worker.url })
    const gate = Promise.withResolvers<void>()
    worker.script('POST /v1/chat/completions', async () => {
      await gate.promise
      return jsonAnswer(chatCompletion('test-model'))
    })
    const running = api.send('POST', '/v1/chat/completions', chat('test-model'))
    await worker.received('POST /v1/chat/completions')
    await api.send('DELETE', `/workers/${id}`)
    await api.gone(id)
    gate.resolve()
    expect((await running).status).toBe(200)
  })

  test('the url can be registered again after the removal and gets a new id', async () => {
    const worker = await openWorker()
    const api = await openApi({ health: { drain_settle_secs: 0 } })
    const id = await api.register({ url: worker.url })
    await api.send('DELETE', `/workers/${id}`)
    await api.gone(id)
    expect(await api.register({ url: worker.url })).not.toBe(id)
  })

  test('DELETE cancels an unfinished registration', async () => {
    const api = await openApi()
    const url = await deadUrl()
    const { worker_id: id } = (await api.post({ url })).json
    expect((await api.send('DELETE', `/workers/${id}`)).status).toBe(202)
    expect((await api.get(`/workers/${id}`)).status).toBe(404)
    const worker = await openWorker({ port: Number(new URL(url).port) })
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect(worker.requests).toEqual([])
  })
})

describe('health', () => {
  test('three failed probes make a worker not_ready, two good ones ready again', async () => {
    const worker = await openWorker()
    const api = await openApi({ health: { check_interval_secs: 0.2 } })
    const id = await api.register({ url: worker.url, resilience: { disable_retry: true } })
    worker.script('GET /health', rawAnswer('', { status: 503 }))
    await api.until(id, ({ json }) => json.status === 'not_ready' && json.is_healthy === false)
    expect((await api.send('POST', '/v1/chat/completions', chat('test-model'))).status).toBe(503)
    worker.script('GET /health', rawAnswer(''))
    await api.until(id, ({ json }) => json.status === 'ready' && json.is_healthy === true)
    expect((await api.send('POST', '/v1/chat/completions', chat('test-model'))).status).toBe(200)
  })

  test('a failed worker stays listed until it recovers, or is removed if configured', async () => {
    for (const removeUnhealthy of [false, true]) {
      const worker = await openWorker()
      const api = await openApi({
        removeUnhealthy,
        health: { check_interval_secs: 0.02, failure_threshold: 1 },
      })
      const id = await api.register({ url: worker.url })
      worker.script('GET /health', rawAnswer('', { status: 503 }))
      if (removeUnhealthy) await api.gone(id)
      else {
        await api.until(id, ({ json }) => json.status === 'failed')
        worker.script('GET /health', rawAnswer(''))
        await api.until(id, ({ json }) => json.status === 'ready')
      }
    }
  })

  test('the probe of a worker is authenticated with its key', async () => {
    const worker = await openWorker()
    const api = await openApi()
    await api.register({ url: worker.url, api_key: KEY })
    const probe = await worker.received('GET /health', 2)
    expect(probe.header('authorization')).toBe(`Bearer ${KEY}`)
  })
})

describe('routing', () => {
  test('a wildcard worker serves any model, and one that lists the model is preferred', async () => {
    const wildcard = await openWorker({ models: ['w'] })
    const holder = await openWorker({ models: ['held'] })
    const api = await openApi()
    await api.register({ url: wildcard.url, models: [] })
    await api.register({ url: holder.url })
    expect((await api.send('POST', '/v1/chat/completions', chat('anything'))).status).toBe(200)
    expect((await api.send('POST', '/v1/chat/completions', chat('held'))).status).toBe(200)
    expect(wildcard.requestsTo('POST /v1/chat/completions').length).toBe(1)
    expect(holder.requestsTo('POST /v1/chat/completions').length).toBe(1)
  })

  test('a worker that lists no models gets requests of unknown models only while no other worker lists one', async () => {
    const silent = await openWorker({ shape: 'plain', models: [] })
    const holder = await openWorker({ models: ['held'] })
    const api = await openApi()
    await api.register({ url: silent.url })
    expect((await api.send('POST', '/v1/chat/completions', chat('mistyped'))).status).toBe(200)
    await api.register({ url: holder.url })
    expect((await api.send('POST', '/v1/chat/completions', chat('mistyped'))).status).toBe(404)
    expect((await api.send('POST', '/v1/chat/completions', chat('held'))).status).toBe(200)
    expect(silent.requestsTo('POST /v1/chat/completions').length).toBe(1)
  })
})

describe('cloud services', () => {
  test("the gateway's key lists the models behind a path prefix, and is not sent with client requests", async () => {
    const service = await openWorker()
    service.script('GET /openai/v1/models', jsonAnswer({ data: [{ id: 'm-2025-01-02' }, { id: 'm' }] }))
    service.script('POST /openai/v1/chat/completions', jsonAnswer(chatCompletion('m')))
    const url = `${service.url}/openai/v1`
    const api = await openApi({
      adminKeys: { openai: KEY },
      workers: [{ url, runtime_type: 'external', provider: 'openai' }],
    })
    await expect.poll(async () => readyIn((await api.get('/workers')).json)).toBe(1)
    expect((await api.get('/workers')).json.workers).toMatchObject([
      { url, provider: 'openai', models: [{ id: 'm', aliases: ['m-2025-01-02'] }], status: 'ready' },
    ])
    expect(service.requests.map((request) => [request.path, request.header('authorization')])).toEqual([
      ['/openai/v1/models', `Bearer ${KEY}`],
    ])
    const response = await fetch(`${api.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer of-the-client' },
      body: JSON.stringify(chat('m-2025-01-02')),
    })
    expect(response.status).toBe(200)
    const [request] = service.requestsTo('POST /openai/v1/chat/completions')
    expect(request.header('authorization')).toBe('Bearer of-the-client')
    expect(request.json()).toMatchObject({ model: 'm' })
  })
})

const readyIn = (list: { workers: { status: string }[] }) =>
  list.workers.filter(({ status }) => status === 'ready').length

describe('a worker that is down at boot', () => {
  test('is listed as pending with its last problem, and registered when it starts', async () => {
    const worker = await openWorker()
    worker.script('GET /health', rawAnswer('', { status: 503 }))
    const api = await openApi({ urls: [worker.url] })
    await expect
      .poll(async () => (await api.get('/workers')).json.workers[0]?.job_status?.message)
      .toContain('answered 503')
    expect((await api.get('/workers')).json).toMatchObject({
      total: 1,
      workers: [{ url: worker.url, status: 'pending' }],
    })
    worker.script('GET /health', rawAnswer(''))
    await expect.poll(async () => readyIn((await api.get('/workers')).json)).toBe(1)
  })
})

describe('many workers', () => {
  const COUNT = 2_000
  const best = async (measure: () => Promise<unknown>) => {
    const tookMs: number[] = []
    for (let round = 0; round < 8; round++) {
      const startedAtMs = performance.now()
      await measure()
      tookMs.push(performance.now() - startedAtMs)
    }
    return Math.min(...tookMs)
  }

  test('2,000 workers are registered in a burst, listed quickly, and readiness stays fast', async () => {
    const api = await openApi()
    const base = await deadUrl()
    const specs = Array.from({ length: COUNT }, (_, place) => ({
      url: `${base}/w${place}`,
      runtime_type: 'sglang',
      models: [{ id: 'm' }],
      health: { disable_health_check: true },
    }))
    const lane = async () => {
      for (let spec = specs.pop(); spec !== undefined; spec = specs.pop()) {
        let reply = await api.post(spec)
        while (reply.status === 503) {
          await new Promise((resolve) => setTimeout(resolve, 20))
          reply = await api.post(spec)
        }
        expect(reply.status).toBe(202)
      }
    }
    await Promise.all(Array.from({ length: 16 }, lane))
    const countReady = async () => readyIn((await api.get('/workers')).json)
    await expect.poll(countReady, { timeout: 300_000, interval: 200 }).toBe(COUNT)
    expect(await best(() => api.get('/workers'))).toBeLessThan(2_000)
    expect(await best(() => api.get('/readiness'))).toBeLessThan(1_000)
  }, 600_000)
})

describe('start', () => {
  test('workers of the configuration are registered without a request, with all their settings', async () => {
    const [one, two] = [await openWorker({ models: ['one'] }), await openWorker({ models: ['two'] })]
    const api = await openApi({
      urls: [one.url],
      workers: [{ url: two.url, priority: 60, labels: { zone: 'b' } }],
    })
    await expect.poll(async () => readyIn((await api.get('/workers')).json)).toBe(2)
    expect((await api.get('/workers')).json.workers).toMatchObject([
      { url: one.url, model_id: 'one', priority: 50 },
      { url: two.url, model_id: 'two', priority: 60, labels: { zone: 'b' } },
    ])
  })

  test.each([
    [{ urls: ['host:1'] }, 'urls.0'],
    [{ urls: ['http://h:1', 'http://h:1'] }, 'must not repeat'],
    [{ workers: [{ url: 'http://h', bootstrap_port: 0 }] }, 'bootstrap_port'],
    [{ urls: ['http://h:1', 'http://H:1/'] }, 'must not repeat'],
    [
      { workers: [{ url: 'http://h', resilience: { initial_backoff_ms: 2, max_backoff_ms: 1 } }] },
      'workers.0.resilience.max_backoff_ms',
    ],
    [{ workers: [{ url: 'http://h', resilience: { jitter_factor: 2 } }] }, 'jitter_factor'],
    [{ loadMonitorIntervalSecs: 0.5 }, 'loadMonitorIntervalSecs'],
    [{ adminKeys: { openia: 'k' } }, 'openia'],
    [{ modelAliases: { a: 'a' } }, 'modelAliases.a'],
    [{ modelAliases: { a: '' } }, 'modelAliases.a'],
    [{ startupTimeoutSecs: 0 }, 'startupTimeoutSecs'],
    [{ workers: [{ url: 'http://h', prioritty: 1 }] }, 'prioritty'],
  ])('a configuration of %j does not start', async (workers, named) => {
    await expect(startGateway({ kernel: { auth: 'off' }, plugins: { workers } })).rejects.toThrow(named)
  })

  test('with storage, workers of the API survive a restart unchanged; removed ones do not', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'weir-workers-'))
    closers.push(() => rm(dir, { recursive: true, force: true }))
    const [kept, removed] = [await openWorker({ models: ['kept'] }), await openWorker()]
    const first = await openApi({}, { storage: { dir } })
    const id = await first.register({ url: kept.url, api_key: KEY, priority: 7 })
    const removedId = await first.register({ url: removed.url })
    await first.send('PATCH', `/workers/${id}`, { labels: { zone: 'a' } })
    await first.settled(id)
    await first.send('DELETE', `/workers/${removedId}`)
    await first.gone(removedId)
    await (closers.pop() as () => Promise<unknown>)()

    const second = await openApi({}, { storage: { dir } })
    const list = (await second.get('/workers')).json
    expect(list.workers).toMatchObject([
      { id, url: kept.url, priority: 7, model_id: 'kept', labels: { zone: 'a' } },
    ])
    await second.until(id, ({ json }) => json.status === 'ready')
    await second.send('POST', '/v1/chat/completions', chat('kept'))
    expect(kept.requestsTo('POST /v1/chat/completions')[0].header('authorization')).toBe(`Bearer ${KEY}`)
  })
})

test('an unreachable worker is reported to clients with the reason, without its address', async () => {
  const gateway = await startGateway({
    kernel: { lifecycle: { readinessWaitMs: 0 } },
    plugins: { auth: {}, chat: {}, workers: { urls: ['http://127.0.0.1:9'] } },
  })
  try {
    const read = async () => {
      const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'm', messages: [] }),
      })
      const { error } = (await reply.json()) as { error: { message: string; code: string } }
      return `${reply.status} ${error.code} ${error.message}`
    }
    await expect.poll(read).toMatch(/not reachable: .*(connect|refused)/i)
    expect(await read()).toMatch(/^503 no_workers the only worker is registered, not reachable/)
    expect(await read()).not.toContain('127.0.0.1:9')
  } finally {
    await gateway.stop()
  }
})

test('GET /workers filters, counts and pages; pending registrations are part of the order', async () => {
  const engines = [await openWorker(), await openWorker(), await openWorker()]
  const api = await openApi()
  const ids: string[] = []
  for (const [index, { url }] of engines.entries())
    ids.push(await api.register({ url, models: [{ id: index === 2 ? 'other' : 'model' }] }))
  const { worker_id: pending } = (await api.post({ url: await deadUrl(), models: [{ id: 'model' }] })).json
  const list = async (query: string) => (await api.get(`/workers?${query}`)).json
  const shown = ({ workers }: { workers: { id: string }[] }) => workers.map(({ id }) => id)

  const first = await list('limit=3')
  expect(shown(first)).toEqual(ids)
  expect(first).toMatchObject({ total: 4, has_more: true, last_id: ids[2] })
  expect(first.stats).toMatchObject({
    regular_count: 4,
    by_status: { ready: 3, pending: 1 },
    models: [
      { model: 'model', by_status: { ready: 2, pending: 1 } },
      { model: 'other', by_status: { ready: 1 } },
    ],
  })
  expect(await list(`limit=3&after=${ids[2]}`)).toMatchObject({
    workers: [{ id: pending }],
    has_more: false,
    last_id: pending,
  })
  expect(await list('limit=0')).toMatchObject({ workers: [], total: 4, has_more: true, last_id: null })
  expect(shown(await list('state=pending'))).toEqual([pending])
  expect(shown(await list('q=OTHER'))).toEqual([ids[2]])
  expect(shown(await list(`q=${new URL(engines[0].url).port}&model=model`))).toEqual([ids[0]])

  for (const query of ['limit=x', 'limit=', 'limit=1001', 'limit=-1', 'state=unknown'])
    expect(errorOf(await api.get(`/workers?${query}`)), query).toMatchObject({ status: 400 })
})

test('the record of a worker has the reason of its failed probes and the last report of its engine', async () => {
  const engine = await openWorker()
  engine.script(
    'GET /v1/loads',
    jsonAnswer({
      loads: [
        {
          num_running_reqs: 3,
          num_waiting_reqs: 2,
          num_used_tokens: 250,
          max_total_num_tokens: 1_000,
          token_usage: 0.25,
          cache_hit_rate: 0.5,
        },
      ],
    }),
  )
  const api = await openApi({
    engineMetrics: true,
    loadMonitorIntervalSecs: 1,
    health: { check_interval_secs: 1, failure_threshold: 1 },
  })
  const id = await api.register({ url: engine.url, runtime_type: 'sglang' })
  const { json } = await api.until(id, (reply) => reply.json.engine !== undefined)
  expect(json.engine).toEqual({ running: 3, waiting: 2, kv_usage: 0.25, cache_hit_rate: 0.5 })
  expect(json.status_reason).toBeUndefined()
  engine.script('GET /health', rawAnswer('', { status: 503 }))
  const failing = await api.until(id, (reply) => reply.json.status === 'not_ready')
  expect(failing.json.status_reason).toContain('503')
})

test('POST /workers/discover shows what a registration would find, and registers nothing', async () => {
  const engine = await openWorker({ models: ['found-model'] })
  const api = await openApi()
  const found = await api.send('POST', '/workers/discover', { url: engine.url })
  expect(found.status).toBe(200)
  expect(found.json).toMatchObject({ connection_mode: 'http', models: [{ id: 'found-model' }] })
  expect((await api.get('/workers')).json.total).toBe(0)
  expect(errorOf(await api.send('POST', '/workers/discover', { url: 'ftp://x' }))).toMatchObject({
    status: 400,
  })
  engine.script('GET /v1/models', rawAnswer('', { status: 401 }))
  engine.script('GET /health', rawAnswer('', { status: 401 }))
  expect(errorOf(await api.send('POST', '/workers/discover', { url: engine.url }))).toMatchObject({
    status: 502,
    code: 'discovery_failed',
  })
})

test('POST /workers/discover does not wait for an engine that is not ready', async () => {
  const engine = await openWorker({ models: ['found-model'] })
  engine.script('GET /health', rawAnswer('', { status: 503 }))
  const api = await openApi()
  const startedAtMs = performance.now()
  const rejected = await api.send('POST', '/workers/discover', { url: engine.url })
  expect(rejected.status).toBe(502)
  expect(JSON.stringify(rejected.json)).toContain('503')
  expect(performance.now() - startedAtMs).toBeLessThan(5_000)
})
