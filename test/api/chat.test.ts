import { describe, expect, test } from 'vitest'
import { sendRaw } from '../support/raw-socket.ts'
import {
  chatCompletion,
  chatStream,
  dropAnswer,
  jsonAnswer,
  rawAnswer,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { openFleet } from './fleet.ts'

const chat = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const CHAT = '/v1/chat/completions'

const ROUTES: [string, object, RegExp][] = [
  [CHAT, chat, /^chatcmpl-[A-Za-z0-9]{24}$/],
  ['/v1/completions', { model: 'test-model', prompt: 'hi' }, /^cmpl-[A-Za-z0-9]{24}$/],
  ['/generate', { text: 'hi' }, /^gnt-[A-Za-z0-9]{24}$/],
  ['/v1/embeddings', { model: 'test-model', input: 'hi' }, /^req-[A-Za-z0-9]{24}$/],
  ['/v1/classify', { model: 'test-model', input: 'hi' }, /^req-[A-Za-z0-9]{24}$/],
]

describe('relayed routes', () => {
  test.each(ROUTES)(
    'POST %s: bodies are relayed byte for byte in both directions',
    async (path, body, requestId) => {
      const fleet = await openFleet()
      const answer = '{ "any":  "thing", "n": 1.0 }\n'
      fleet.workers[0].script(
        `POST ${path}`,
        rawAnswer(answer, { headers: { 'content-type': 'application/json', 'x-should-retry': 'yes' } }),
      )
      const sent = JSON.stringify({ ...body, unknown_field: { 'näh ': [1, 2.5e3, null] } }, null, 3)
      const reply = await fleet.post(path, sent)
      expect(reply.status).toBe(200)
      expect(await reply.text()).toBe(answer)
      expect(reply.headers.get('x-should-retry')).toBe('yes')
      expect(reply.headers.get('content-type')).toBe('application/json')
      expect(reply.headers.get('x-request-id')).toMatch(requestId)
      const [received] = fleet.workers[0].requestsTo(`POST ${path}`)
      expect(received.body.toString()).toBe(sent)
      expect(received.header('x-request-id')).toBe(reply.headers.get('x-request-id'))
    },
  )

  test.each(ROUTES)(
    "POST %s: a worker's cookies, challenges and redirects do not reach the client",
    async (path, body) => {
      const fleet = await openFleet({ kernel: { upstream: { forwardResponseHeaders: ['X-Cost'] } } })
      const headers = {
        'set-cookie': 'session=1',
        'www-authenticate': 'Basic realm="worker"',
        location: 'http://10.0.0.7/',
        server: 'uvicorn',
        'x-engine-host': 'node-7',
        'x-cost': '3',
      }
      fleet.workers[0].script(`POST ${path}`, jsonAnswer({}, { headers }))
      const reply = await fleet.post(path, body)
      const dropped = ['set-cookie', 'www-authenticate', 'location', 'server', 'x-engine-host']
      expect(dropped.map((name) => reply.headers.get(name))).toEqual(dropped.map(() => null))
      expect(reply.headers.get('x-cost')).toBe('3')
    },
  )

  test.each(ROUTES)('POST %s: a body that is not one JSON object is rejected', async (path) => {
    const fleet = await openFleet()
    for (const body of ['', '{', '[]', '"x"', '{"model":"m"} x', '{"model":"m",}']) {
      const reply = await fleet.post(path, body)
      expect(reply.status).toBe(400)
      expect(await reply.json()).toMatchObject({
        error: {
          type: 'invalid_request_error',
          code: 'json_parse_error',
          message: expect.stringMatching(
            /^the request body (?:is not valid JSON: |must be one JSON object \(got )/,
          ),
        },
      })
    }
    expect(fleet.workers[0].requests).toEqual([])
  })

  test.each(ROUTES)(
    'POST %s: JSON nested up to the limit passes, one level more is rejected',
    async (path, body) => {
      const fleet = await openFleet({ kernel: { http: { maxJsonDepth: 20 } } })
      fleet.workers[0].script(`POST ${path}`, rawAnswer('{}'))
      const nested = (levels: number, filler = '') =>
        `${JSON.stringify(body).slice(0, -1)},"a":"${filler}","b":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
      expect((await fleet.post(path, nested(20))).status).toBe(200)
      // Also with a body so long that it is scanned in several steps.
      for (const filler of ['', 'x'.repeat(500_000)]) {
        const reply = await fleet.post(path, nested(21, filler))
        expect(reply.status).toBe(400)
        const { error } = (await reply.json()) as { error: { message: string } }
        expect(error).toMatchObject({ type: 'invalid_request_error', code: 'json_too_deep' })
        expect(error.message).toContain('more than 20 levels deep (kernel.http.maxJsonDepth)')
      }
      expect(fleet.workers[0].requests).toHaveLength(1)
    },
  )

  test('the default limit is 128 levels', async () => {
    const fleet = await openFleet()
    fleet.workers[0].script(`POST ${CHAT}`, rawAnswer('{}'))
    const nested = (levels: number) =>
      `{"model":"test-model","a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    expect((await fleet.post(CHAT, nested(128))).status).toBe(200)
    const reply = await fleet.post(CHAT, nested(129))
    expect([reply.status, reply.headers.get('x-weir-error-code')]).toEqual([400, 'json_too_deep'])
  })

  test.each(ROUTES)(
    'POST %s: a model or stream of the wrong type is rejected by name',
    async (path, body) => {
      const fleet = await openFleet()
      for (const [field, value] of [
        ['model', 7],
        ['stream', 'yes'],
      ]) {
        const reply = await fleet.post(path, { ...body, [field as string]: value })
        expect(reply.status).toBe(400)
        expect(await reply.json()).toMatchObject({ error: { type: 'invalid_request_error', param: field } })
      }
    },
  )

  test.each(ROUTES)('POST %s: an unknown model is 404, GET is 405', async (path, body) => {
    const fleet = await openFleet()
    const unknown = await fleet.post(path, { ...body, model: 'nobody-serves-this' })
    expect(unknown.status).toBe(404)
    expect(await unknown.json()).toMatchObject({
      error: { type: 'not_found_error', code: 'model_not_found' },
    })
    const wrongMethod = await fleet.get(path)
    expect(wrongMethod.status).toBe(405)
    expect(wrongMethod.headers.get('allow')).toContain('POST')
  })

  test.each(ROUTES)('POST %s: without registered workers the response is a 503', async (path, body) => {
    const reply = await (await openFleet({ workers: [] })).post(path, body)
    expect(reply.status).toBe(503)
    expect(await reply.json()).toMatchObject({ error: { type: 'service_unavailable', code: 'no_workers' } })
  })

  test.each(ROUTES)('POST %s: status of the worker passes through, with its words', async (path, body) => {
    const fleet = await openFleet()
    fleet.workers[0].script(`POST ${path}`, jsonAnswer({ detail: 'too long' }, { status: 422 }))
    const reply = await fleet.post(path, body)
    expect(reply.status).toBe(422)
    expect(await reply.json()).toEqual({
      error: { message: 'too long', type: 'invalid_request_error', code: 'worker_refused' },
    })
  })
})

test.each(ROUTES.filter(([path]) => path !== '/generate'))(
  'POST %s without a model is a 400 that names the field',
  async (path, body) => {
    const fleet = await openFleet()
    for (const model of [undefined, null, '']) {
      const reply = await fleet.post(path, { ...body, model })
      expect(reply.status).toBe(400)
      expect(await reply.json()).toMatchObject({
        error: { type: 'invalid_request_error', code: 'missing_model', param: 'model' },
      })
    }
  },
)

test('POST /generate without a model or with an unknown model goes to any worker', async () => {
  const fleet = await openFleet()
  fleet.workers[0].script('POST /generate', jsonAnswer({ text: 'x', output_ids: [1], meta_info: {} }))
  for (const model of [undefined, null, '', 'unknown', 'test-model']) {
    expect((await fleet.post('/generate', { text: 'hi', model })).status).toBe(200)
  }
})

describe('a model with workers of several formats', () => {
  const choices = [{ index: 0, text: 'x', logprobs: null, finish_reason: 'stop' }]
  const openMixed = async (models: readonly string[]) => {
    const fleet = await openFleet({
      plugins: { messages: {}, responses: {} },
      workers: [
        { models: [models[0]], spec: { runtime_type: 'external', provider: 'anthropic', priority: 60 } },
        { models: [models[1]], spec: { apis: ['responses'] } },
        { models: [models[2]] },
      ],
    })
    fleet.workers[2].script(
      'POST /v1/completions',
      jsonAnswer({ id: 'cmpl-1', object: 'text_completion', choices }),
    )
    fleet.workers[2].script('POST /generate', jsonAnswer({ text: 'x', output_ids: [1], meta_info: {} }))
    return fleet
  }

  test('a text goes to one that completes texts', async () => {
    const { post, workers } = await openMixed(['test-model', 'test-model', 'test-model'])
    for (let i = 0; i < 4; i++) {
      const completion = { model: 'test-model', prompt: `hi ${i}`, max_tokens: 4 }
      expect((await post('/v1/completions', completion)).status).toBe(200)
      expect((await post('/generate', { model: 'test-model', text: `hi ${i}` })).status).toBe(200)
    }
    expect([...workers[0].requests, ...workers[1].requests]).toEqual([])
  })

  test.each([{ n: 2 }, { regex: 'a+' }, { response_format: { type: 'json_object' } }])(
    'a chat with %j goes to one whose format can express it',
    async (settings) => {
      const { post, workers } = await openMixed(['test-model', 'test-model', 'test-model'])
      for (let i = 0; i < 4; i++) {
        const messages = [{ role: 'user', content: `hi ${i}` }]
        expect((await post(CHAT, { ...chat, messages, ...settings })).status).toBe(200)
      }
      expect(workers[2].requestsTo(`POST ${CHAT}`)).toHaveLength(4)
    },
  )

  test('a text without a model goes to one that takes the format', async () => {
    const { post, workers } = await openMixed(['vendor', 'items', 'engine'])
    for (let i = 0; i < 4; i++) expect((await post('/generate', { text: `hi ${i}` })).status).toBe(200)
    expect(workers[2].requestsTo('POST /generate')).toHaveLength(4)
  })

  test('a text is a 501 if no worker completes texts', async () => {
    const { post } = await openMixed(['vendor', 'items', 'engine'])
    for (const model of ['vendor', 'items']) {
      const reply = await post('/v1/completions', { model, prompt: 'hi' })
      expect([reply.status, await reply.json()]).toMatchObject([501, { error: { code: 'engine_missing' } }])
    }
  })
})

test('a null stream means false', async () => {
  expect((await (await openFleet()).post(CHAT, { ...chat, stream: null })).status).toBe(200)
})

test('a streamed chat is relayed event by event, unchanged', async () => {
  const fleet = await openFleet()
  fleet.workers[0].script(`POST ${CHAT}`, chatStream('test-model', ['Hel', 'lo']))
  const stream = await openSse(fleet.gateway.url + CHAT, { body: { ...chat, stream: true } })
  await stream.done
  expect(stream.status).toBe(200)
  expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/)
  expect(stream.isWhole).toBe(true)
  expect(stream.events.at(-1)?.data).toBe('[DONE]')
  expect(stream.events).toHaveLength(5)
})

test('a worker error keeps its content type although a stream was requested', async () => {
  const fleet = await openFleet()
  fleet.workers[0].script(`POST ${CHAT}`, jsonAnswer({ detail: 'no' }, { status: 400 }))
  const reply = await fleet.post(CHAT, { ...chat, stream: true })
  expect(reply.status).toBe(400)
  expect(reply.headers.get('content-type')).toBe('application/json')
})

test('a connection dropped before the first byte is a 502, in mid-stream an error event', async () => {
  const fleet = await openFleet()
  fleet.workers[0].script(`POST ${CHAT}`, dropAnswer())
  const dropped = await fleet.post(CHAT, chat)
  expect(dropped.status).toBe(502)
  expect(await dropped.json()).toMatchObject({ error: { type: 'internal_error' } })
  fleet.workers[0].script(
    `POST ${CHAT}`,
    streamAnswer(['data: {"a":1}\n\n', { drop: 'close' }], {
      headers: { 'content-type': 'text/event-stream' },
    }),
  )
  const stream = await openSse(fleet.gateway.url + CHAT, { body: { ...chat, stream: true } })
  await stream.done
  expect(stream.events[0].data).toBe('{"a":1}')
  expect(JSON.parse(stream.events[1].data)).toHaveProperty('error.type', 'internal_error')
})

test('a worker that sends no first byte within the timeout is a 504', async () => {
  const fleet = await openFleet({ kernel: { upstream: { headMs: 100, firstTokenMs: 100 } } })
  fleet.workers[0].script(`POST ${CHAT}`, { kind: 'hang' })
  const reply = await fleet.post(CHAT, chat)
  expect(reply.status).toBe(504)
  expect(await reply.json()).toMatchObject({ error: { code: 'call_upstream_timeout' } })
})

test('an alias is replaced by the canonical id, and nothing else in the body changes', async () => {
  const spec = { models: [{ id: 'test-model', aliases: ['short'] }] }
  const fleet = await openFleet({ workers: [{ spec }] })
  expect((await fleet.post(CHAT, '{ "x": 1, "model" : "short" , "messages":[] }')).status).toBe(200)
  expect(fleet.workers[0].requests[0].body.toString()).toBe(
    '{ "x": 1, "model" : "test-model" , "messages":[] }',
  )
})

describe('validation', () => {
  const wrong = { ...chat, temperature: 9, top_logprobs: 1 }
  test('is left to the worker by default', async () => {
    const fleet = await openFleet()
    expect((await fleet.post(CHAT, wrong)).status).toBe(200)
  })

  test('full: invalid fields and rules are rejected by name, and valid bodies are relayed byte for byte', async () => {
    const fleet = await openFleet({ plugins: { chat: { validate: 'full' } } })
    const field = await fleet.post(CHAT, wrong)
    expect(field.status).toBe(400)
    expect(await field.json()).toMatchObject({
      error: { type: 'invalid_request_error', code: 'invalid_field', param: 'temperature' },
    })
    const rule = await fleet.post(CHAT, { ...chat, top_logprobs: 1 })
    expect(rule.status).toBe(400)
    expect(await rule.json()).toMatchObject({ error: { code: 'top_logprobs_requires_logprobs' } })
    const noMessages = await fleet.post(CHAT, { model: 'test-model' })
    expect(await noMessages.json()).toMatchObject({ error: { param: 'messages' } })
    expect(fleet.workers[0].requests).toEqual([])
    const sent = JSON.stringify({ ...chat, max_tokens: 5, made_up: [1] }, null, 2)
    expect((await fleet.post(CHAT, sent)).status).toBe(200)
    expect(fleet.workers[0].requests[0].body.toString()).toBe(sent)
  })

  test.each([
    ['/v1/completions', { model: 'test-model', prompt: [] }, 'prompt_empty'],
    ['/generate', { text: 'a', input_ids: [1] }, 'text_or_input_ids_required'],
    ['/v1/embeddings', { model: 'test-model' }, 'invalid_field'],
    ['/v1/classify', { model: 'test-model', input: 7 }, 'invalid_field'],
  ])('full: POST %s with %j is %s', async (path, body, code) => {
    const fleet = await openFleet({ plugins: { chat: { validate: 'full' } } })
    const reply = await fleet.post(path, body)
    expect(reply.status).toBe(400)
    expect(await reply.json()).toMatchObject({ error: { type: 'invalid_request_error', code } })
  })
})

describe('GET /v1/models', () => {
  test('lists each registered model once, those of cloud services included', async () => {
    const service = {
      models: ['b', 'gpt'],
      spec: { runtime_type: 'external', provider: 'openai', api_key: 'w' },
    }
    const fleet = await openFleet({ workers: [{ models: ['a', 'b'] }, service] })
    const reply = await fleet.get('/v1/models')
    expect(reply.status).toBe(200)
    const entry = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'self_hosted' })
    const gpt = { ...entry('gpt'), owned_by: 'openai' }
    const local = (id: string) => ({ ...entry(id), max_model_len: 32_768 })
    expect(await reply.json()).toEqual({ object: 'list', data: [local('a'), local('b'), gpt] })
  })

  test('is a 503 without workers', async () => {
    const reply = await (await openFleet({ workers: [] })).get('/v1/models')
    expect(reply.status).toBe(503)
    expect(await reply.json()).toMatchObject({ error: { type: 'service_unavailable' } })
  })

  test("queries external workers with a caller's own key, and never with a gateway key", async () => {
    const fleet = await openFleet({
      workers: [{ models: ['local'] }, { models: ['gpt'], spec: { runtime_type: 'external', api_key: 'w' } }],
      plugins: {
        auth: { apiKey: 'shared', tenantKeys: ['t:tenant'] },
        chat: { callerKeyHosts: ['127.0.0.1'] },
      },
    })
    const [, external] = fleet.workers
    const ids = async (headers?: Record<string, string>) => {
      const { data } = (await (await fleet.get('/v1/models', headers)).json()) as { data: { id: string }[] }
      return data.map(({ id }) => id)
    }
    expect(await ids()).toEqual(['local', 'gpt'])
    expect(await ids({ authorization: 'Bearer shared' })).toEqual(['local', 'gpt'])
    expect(await ids({ authorization: 'bearer tenant' })).toEqual(['local', 'gpt'])
    expect(external.requestsTo('GET /v1/models')).toEqual([])
    expect(await ids({ authorization: 'Bearer theirs' })).toEqual(['gpt'])
    expect(external.requestsTo('GET /v1/models')[0].header('authorization')).toBe('Bearer theirs')
    external.script('GET /v1/models', rawAnswer('', { status: 401 }))
    expect(await ids({ authorization: 'Bearer theirs' })).toEqual(['local', 'gpt'])
  })
})

test('GET /v1/models/{id} returns one model by id or alias, with or without its slash encoded', async () => {
  const fleet = await openFleet({ workers: [{ models: ['plain', 'owner/model'] }] })
  for (const [path, id] of [
    ['plain', 'plain'],
    ['owner%2Fmodel', 'owner/model'],
    ['owner/model', 'owner/model'],
  ]) {
    const reply = await fleet.get(`/v1/models/${path}`)
    const fields = { object: 'model', created: 0, owned_by: 'self_hosted', max_model_len: 32_768 }
    expect(await reply.json()).toEqual({ id, ...fields })
  }
  const unknown = await fleet.get('/v1/models/nobody')
  expect(unknown.status).toBe(404)
  expect(await unknown.json()).toMatchObject({ error: { code: 'model_not_found', param: 'model' } })
})

describe('model and server info', () => {
  test('comes from the first ready worker and always has the documented fields', async () => {
    const fleet = await openFleet({ workers: [{}, {}] })
    const model = await fleet.get('/get_model_info')
    expect(model.status).toBe(200)
    expect(await model.json()).toMatchObject({
      model_name: 'test-model',
      max_tokens: expect.any(Number),
      vocab_size: expect.any(Number),
      is_generation: true,
    })
    const server = await fleet.get('/get_server_info')
    expect(await server.json()).toMatchObject({
      version: '0.5.3',
      backend: 'sglang',
      gpu_count: 1,
      tp_size: 1,
    })
    expect(fleet.workers[1].requests).toEqual([])
  })

  test.each(['/get_model_info', '/get_server_info'])('GET %s relays error responses', async (path) => {
    const fleet = await openFleet()
    fleet.workers[0].script(
      `GET ${path}`,
      jsonAnswer({ detail: 'x' }, { status: 418, headers: { etag: 'b' } }),
    )
    const reply = await fleet.get(path)
    expect(reply.status).toBe(418)
    expect(reply.headers.get('etag')).toBe('b')
    expect(await reply.json()).toEqual({ detail: 'x' })
  })

  test.each([
    ['a list with one entry per rank', jsonAnswer([{ api_key: 'secret-1', model_name: 'm' }])],
    ['an object with another status', jsonAnswer({ api_key: 'secret-1' }, { status: 203 })],
    ['a text', rawAnswer('--api-key secret-1', { headers: { 'content-type': 'text/plain' } })],
    ['nested too deeply', rawAnswer(`{"a":"secret-1","b":${'['.repeat(1_000)}${']'.repeat(1_000)}}`)],
  ])('GET model and server info does not relay %s', async (_what, answer) => {
    const fleet = await openFleet()
    for (const path of ['/get_model_info', '/get_server_info']) {
      fleet.workers[0].script(`GET ${path}`, answer)
      const reply = await fleet.get(path)
      expect(reply.status).toBe(200)
      const text = await reply.text()
      expect(text).not.toContain('secret-1')
      expect(JSON.parse(text)).toMatchObject(
        path === '/get_model_info' ? { model_name: 'test-model' } : { gpu_count: 1 },
      )
    }
  })

  test.each(['/get_model_info', '/get_server_info'])(
    'GET %s is a 503 without workers, a 502 after a dropped connection and a 504 after a timeout',
    async (path) => {
      const empty = await (await openFleet({ workers: [] })).get(path)
      expect(empty.status).toBe(503)
      expect(await empty.json()).toMatchObject({ error: { type: 'service_unavailable', code: 'no_workers' } })
      const fleet = await openFleet({ kernel: { upstream: { headMs: 1_000, firstTokenMs: 1_000 } } })
      fleet.workers[0].script(`GET ${path}`, dropAnswer())
      expect((await fleet.get(path)).status).toBe(502)
      fleet.workers[0].script(`GET ${path}`, { kind: 'hang' })
      expect((await fleet.get(path)).status).toBe(504)
    },
  )
})

test('a wrong method is an invalid request on serving routes, and has a type of its own on control-plane routes', async () => {
  const fleet = await openFleet()
  for (const path of [CHAT, '/v1/embeddings', '/v1/models']) {
    const reply = await fetch(fleet.gateway.url + path, { method: 'DELETE' })
    expect([path, reply.status]).toEqual([path, 405])
    const { error } = (await reply.json()) as { error: object }
    expect(error).toMatchObject({ type: 'invalid_request_error', code: 'method_not_allowed' })
  }
  for (const path of ['/workers', '/get_loads']) {
    const reply = await fetch(fleet.gateway.url + path, { method: 'DELETE' })
    expect([path, reply.status]).toEqual([path, 405])
    const { error } = (await reply.json()) as { error: object }
    expect(error).toMatchObject({ type: 'method_not_allowed', code: 'method_not_allowed' })
  }
})

test('an unknown model is a 404, a model without a healthy worker a 503', async () => {
  const fleet = await openFleet({ kernel: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } } })
  const unknown = await fleet.post(CHAT, { ...chat, model: 'nobody-serves-this' })
  expect(unknown.status).toBe(404)
  expect(unknown.headers.get('x-weir-error-code')).toBe('model_not_found')
  expect(await unknown.json()).toEqual({
    error: {
      type: 'not_found_error',
      code: 'model_not_found',
      param: 'model',
      message: expect.stringContaining("'nobody-serves-this'"),
    },
  })
  fleet.workers[0].script(`POST ${CHAT}`, dropAnswer())
  expect((await fleet.post(CHAT, chat)).status).toBe(502)
  const away = await fleet.post(CHAT, chat)
  expect(away.status).toBe(503)
  expect(Number(away.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(await away.json()).toEqual({
    error: {
      type: 'service_unavailable',
      code: 'no_available_workers',
      message: expect.stringContaining("'test-model'"),
    },
  })
})

test('connection headers of the client are not forwarded, trace and routing key headers are', async () => {
  const fleet = await openFleet()
  fleet.workers[0].script(`POST ${CHAT}`, jsonAnswer(chatCompletion('test-model')))
  const body = JSON.stringify(chat)
  const lines = [
    `POST ${CHAT} HTTP/1.1`,
    'Host: gateway',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Connection: keep-alive, Upgrade',
    'Keep-Alive: timeout=5',
    'Proxy-Authorization: Basic c2VjcmV0',
    'Proxy-Connection: keep-alive',
    'TE: trailers',
    'Trailer: expires',
    'Upgrade: h2c',
    'Cookie: session=1',
    'X-Custom: mine',
    'Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    'X-Weir-Routing-Key: k-1',
  ]
  const { statuses } = await sendRaw(fleet.gateway.port, `${lines.join('\r\n')}\r\n\r\n${body}`, {
    until: (text) => text.includes('chat.completion'),
  })
  expect(statuses).toEqual([200])
  const [request] = fleet.workers[0].requestsTo(`POST ${CHAT}`)
  expect(request.rawHeaders.map(([name]) => name.toLowerCase()).sort()).toEqual([
    'content-length',
    'content-type',
    'host',
    'traceparent',
    'x-request-id',
    'x-weir-routing-key',
  ])
  expect(request.header('x-weir-routing-key')).toBe('k-1')
})

test('requests in flight on one worker do not delay another model', async () => {
  const fleet = await openFleet({ workers: [{ models: ['a'] }, { models: ['b'] }] })
  fleet.workers[1].script(`POST ${CHAT}`, jsonAnswer(chatCompletion('b')))
  expect((await fleet.post(CHAT, { ...chat, model: 'b' })).status).toBe(200)
  expect(fleet.workers[0].requests).toEqual([])
})
