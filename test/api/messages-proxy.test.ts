/** POST /v1/messages over workers with the Messages format: relayed bytes, credentials, retries, mixed fleets. */
import { expect, test } from 'vitest'
import { dropAnswer, hangAnswer, jsonAnswer, rawAnswer, streamAnswer } from '../support/scripted-worker.ts'
import { CHAT, COUNT, HELLO, MESSAGES, openMessages, VENDOR } from './messages-fleet.ts'

const REPLY =
  '{"id":"msg_1","type":"message","usage":{"input_tokens":1.0,"output_tokens":2},"new":{"a":[1,2]}}'
const ANSWER = rawAnswer(REPLY, {
  headers: { 'content-type': 'application/json', 'request-id': 'req_vendor', 'anthropic-ratelimit-x': '5' },
})

test('bodies are relayed byte for byte in both directions, unknown members included', async () => {
  const { post, workers } = await openMessages({ workers: [VENDOR] })
  workers[0].script(MESSAGES, ANSWER)
  const body = `{ "model":"test-model", "max_tokens": 0, "messages":[{"role":"critic","content":[{"type":"hologram","n":1.0}]}], "brand_new": {"x":1e2} }`
  const reply = await post('/v1/messages?beta=true', body, { 'anthropic-beta': 'a,b' })
  expect(await reply.text()).toBe(REPLY)
  expect(reply.headers.get('request-id')).toBe('req_vendor')
  expect(reply.headers.get('anthropic-ratelimit-x')).toBe('5')
  expect(reply.headers.get('x-request-id')).toMatch(/^req_/)
  const [sent] = workers[0].requestsTo(MESSAGES)
  expect(sent.body.toString()).toBe(body)
  expect(sent.path).toBe('/v1/messages?beta=true')
})

test('required fields are validated before the relay', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR] })
  for (const [body, path] of [
    [{ max_tokens: undefined }, 'max_tokens'],
    [{ max_tokens: '5' }, 'max_tokens'],
    [{ max_tokens: -1 }, 'max_tokens'],
    [{ messages: [] }, 'messages'],
    [{ messages: undefined }, 'messages'],
    [{ model: undefined }, 'model'],
  ] as const) {
    const reply = await create(body)
    const { error } = (await reply.json()) as { error: { message: string } }
    expect([reply.status, error.message.startsWith(`${path}: `)], error.message).toEqual([400, true])
  }
  expect(workers[0].requestsTo(MESSAGES)).toEqual([])
})

test("the worker's key is sent and never the gateway's; version and betas are forwarded", async () => {
  const { create, workers } = await openMessages({
    workers: [VENDOR],
    plugins: { auth: { apiKey: 'gateway-key' } },
  })
  workers[0].script(MESSAGES, ANSWER)
  await create({}, { authorization: 'Bearer gateway-key', 'anthropic-beta': 'x-1' })
  await create({}, { 'x-api-key': 'gateway-key', 'anthropic-version': '2026-10-21' })
  const [first, second] = workers[0].requestsTo(MESSAGES)
  expect(first.header('x-api-key')).toBe('vendor-key')
  expect(first.header('authorization')).toBeUndefined()
  expect([first.header('anthropic-version'), first.header('anthropic-beta')]).toEqual(['2023-06-01', 'x-1'])
  expect(second.header('anthropic-version')).toBe('2026-10-21')
  expect(JSON.stringify([first.rawHeaders, second.rawHeaders])).not.toContain('gateway-key')
})

test('several anthropic-beta lines reach the worker as one list', async () => {
  const { gateway, workers } = await openMessages({ workers: [VENDOR] })
  workers[0].script(MESSAGES, ANSWER)
  const headers: [string, string][] = [
    ['anthropic-beta', 'a-1,b-2'],
    ['anthropic-beta', 'c-3'],
  ]
  const { request } = await import('node:http')
  await new Promise<void>((resolve, reject) => {
    const asked = request(`${gateway.url}/v1/messages`, { method: 'POST' }, (reply) => {
      reply.resume()
      reply.on('end', resolve)
    })
    asked.on('error', reject)
    asked.setHeader(
      'anthropic-beta',
      headers.map(([, value]) => value),
    )
    asked.end(JSON.stringify(HELLO))
  })
  const sent = workers[0].requestsTo(MESSAGES)[0].rawHeaders.filter(([name]) => name === 'anthropic-beta')
  expect(sent.map(([, value]) => value.replaceAll(' ', ''))).toEqual(['a-1,b-2,c-3'])
})

test('profile and workspace headers are forwarded', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR] })
  workers[0].script(MESSAGES, ANSWER)
  const scope = { 'anthropic-user-profile-id': 'up_1', 'anthropic-workspace-id': 'ws_1' }
  await create({}, scope)
  const sent = workers[0].requestsTo(MESSAGES)[0]
  expect(Object.keys(scope).map((name) => sent.header(name))).toEqual(['up_1', 'ws_1'])
})

test('JSON error responses are relayed unchanged; other error bodies get the Messages error format', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR], kernel: { retry: { maxAttempts: 1 } } })
  for (const [status, type] of [
    [400, 'invalid_request_error'],
    [429, 'rate_limit_error'],
    [529, 'overloaded_error'],
  ] as const) {
    const said = `{"type":"error","error":{"type":"${type}","message":"m","extra":1.0}}`
    workers[0].script(
      MESSAGES,
      rawAnswer(said, {
        status,
        headers: { 'content-type': 'application/json', 'retry-after': '9', 'x-should-retry': 'false' },
      }),
    )
    const reply = await create({ stream: true })
    expect([reply.status, await reply.text()]).toEqual([status, said])
    expect([reply.headers.get('retry-after'), reply.headers.get('x-should-retry')]).toEqual(['9', 'false'])
  }
  workers[0].script(
    MESSAGES,
    rawAnswer('<html>bad gateway</html>', { status: 502, headers: { 'content-type': 'text/html' } }),
  )
  const reply = await create()
  expect(reply.headers.get('content-type')).toBe('application/json')
  expect(await reply.json()).toMatchObject({
    type: 'error',
    error: { type: 'api_error', message: 'bad gateway' },
  })
})

test('response headers of a vendor are forwarded except cookies; 429 and 529 are counted', async () => {
  const { create, gateway, workers } = await openMessages({
    workers: [VENDOR],
    kernel: { retry: { maxAttempts: 1 } },
  })
  const forwarded = {
    'anthropic-ratelimit-requests-remaining': '0',
    'anthropic-organization-id': 'org-1',
    'request-id': 'req_theirs',
    'retry-after': '9',
  }
  for (const status of [200, 429, 529]) {
    const headers = { 'content-type': 'application/json', 'set-cookie': '__cf_bm=1', ...forwarded }
    workers[0].script(MESSAGES, rawAnswer(REPLY, { status, headers }))
    const reply = await create()
    expect(reply.status).toBe(status)
    expect(Object.keys(forwarded).map((name) => reply.headers.get(name))).toEqual(Object.values(forwarded))
    expect(reply.headers.get('x-request-id')).toMatch(/^req_/)
    expect(reply.headers.get('set-cookie')).toBeNull()
  }
  const metrics = await (await fetch(gateway.metricsUrl as string)).text()
  const counted = metrics.split('\n').filter((line) => /_upstream_responses_total\{/.test(line))
  for (const status of ['429', '529'])
    expect(counted.filter((line) => line.includes(`"${status}"`) && line.endsWith(' 1'))).toHaveLength(1)
})

test('streams are relayed byte for byte, and a missing request-id is added', async () => {
  const frames = [
    'event: message_start\ndata: {"type":"message_start" , "x":1.0}\n\n',
    'event: brand_new\ndata: {}\n\n',
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ]
  const { create, workers } = await openMessages({ workers: [VENDOR] })
  workers[0].script(MESSAGES, streamAnswer(frames, { headers: { 'content-type': 'text/event-stream' } }))
  const reply = await create({ stream: true })
  expect(await reply.text()).toBe(frames.join(''))
  expect(reply.headers.get('request-id')).toMatch(/^req_/)
})

test('a relayed stream that is reset ends with an error event', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR] })
  const frame = 'event: message_start\ndata: {"type":"message_start"}\n\n'
  workers[0].script(
    MESSAGES,
    streamAnswer([frame, 'event: content_bl', { waitMs: 30 }, { drop: 'reset' }], {
      headers: { 'content-type': 'text/event-stream' },
    }),
  )
  const text = await (await create({ stream: true })).text()
  expect(text.startsWith(frame)).toBe(true)
  expect(text).toMatch(
    /\n\nevent: error\ndata: \{"type":"error","error":\{"type":"api_error".*"request_id":"req_.*\}\n\n$/,
  )
})

test('a relayed stream that ends before message_stop ends with an error event and counts as a failure', async () => {
  const { create, get, workers } = await openMessages({
    workers: [VENDOR],
    kernel: { retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1 } },
  })
  const frame = 'event: message_start\ndata: {"type":"message_start"}\n\n'
  const headers = { 'content-type': 'text/event-stream' }
  workers[0].script(MESSAGES, streamAnswer([frame, 'event: content_bl', { waitMs: 30 }], { headers }))
  const text = await (await create({ stream: true })).text()
  expect(text.startsWith(`${frame}event: content_bl\n\nevent: error\ndata: {"type":"error"`)).toBe(true)
  const { workers: listed } = (await (await get('/workers')).json()) as { workers: { breaker: string }[] }
  expect(listed[0].breaker).not.toBe('closed')
})

test('a comment after the last event of a relayed stream is not an error', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR] })
  const frame = 'event: message_start\ndata: {"type":"message_start"}\n\n'
  const headers = { 'content-type': 'text/event-stream' }
  const whole = [frame, 'event: message_stop\ndata: {"type":"message_stop"}\n\n', ':\n\n']
  workers[0].script(MESSAGES, streamAnswer(whole, { headers }))
  expect(await (await create({ stream: true })).text()).toBe(whole.join(''))
})

test('an unreachable worker is a 502, a late response a 504', async () => {
  const { create, workers } = await openMessages({
    workers: [VENDOR],
    kernel: { retry: { maxAttempts: 1 }, upstream: { headMs: 200, firstTokenMs: 200 } },
  })
  workers[0].script(MESSAGES, hangAnswer())
  const late = await create()
  expect([late.status, ((await late.json()) as { error: { type: string } }).error.type]).toEqual([
    504,
    'timeout_error',
  ])
  await workers[0].close()
  const gone = await create()
  expect([gone.status, ((await gone.json()) as { error: { type: string } }).error.type]).toEqual([
    502,
    'api_error',
  ])
})

test('a request is retried on another worker before the first byte, and not after it', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR, VENDOR] })
  workers[0].script(MESSAGES, jsonAnswer({}, { status: 503 }))
  workers[1].script(MESSAGES, ANSWER)
  for (let i = 0; i < 4; i++) expect((await create()).status).toBe(200)
  for (const worker of workers) {
    worker.requests.length = 0
    worker.script(
      MESSAGES,
      streamAnswer(['event: ping\ndata: {"type":"ping"}\n\n', { waitMs: 20 }, { drop: 'reset' }], {
        headers: { 'content-type': 'text/event-stream' },
      }),
    )
  }
  await (await create({ stream: true })).text()
  expect(workers[0].requests.length + workers[1].requests.length).toBe(1)
})

test('an overloaded vendor is retried on another worker unless it sends x-should-retry false', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR, VENDOR] })
  const asked = () => workers.map((worker) => worker.requestsTo(MESSAGES).length)
  const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'm' } }
  workers[0].script(MESSAGES, jsonAnswer(overloaded, { status: 529 }))
  workers[1].script(MESSAGES, ANSWER)
  for (let nth = 0; nth < 4; nth++) expect((await create()).status).toBe(200)
  expect(asked()[0]).toBeGreaterThan(0)
  const headers = { 'x-should-retry': 'false' }
  for (const worker of workers) {
    worker.requests.length = 0
    worker.script(MESSAGES, jsonAnswer(overloaded, { status: 529, headers }))
  }
  const reply = await create()
  expect([reply.status, reply.headers.get('x-should-retry')]).toEqual([529, 'false'])
  expect(asked()[0] + asked()[1]).toBe(1)
})

test('a client disconnect closes the upstream request of a relayed stream', async () => {
  const { gateway, workers } = await openMessages({ workers: [VENDOR] })
  workers[0].script(
    MESSAGES,
    streamAnswer(['event: ping\ndata: {"type":"ping"}\n\n', { hang: true }], {
      headers: { 'content-type': 'text/event-stream' },
    }),
  )
  const controller = new AbortController()
  const asked = await fetch(`${gateway.url}/v1/messages`, {
    method: 'POST',
    body: JSON.stringify(HELLO),
    signal: controller.signal,
  })
  controller.abort()
  await asked.text().catch(() => null)
  const [request] = workers[0].requestsTo(MESSAGES)
  await request.closed
  expect(request.isAborted).toBe(true)
})

test('unsigned thinking is removed for a vendor, and signed blocks stay byte for byte', async () => {
  const { post, workers } = await openMessages({ workers: [VENDOR] })
  workers[0].script(MESSAGES, ANSWER)
  const signed = '{ "type":"thinking","thinking":"","signature":"abc" }'
  const unsigned = '{"type":"thinking","thinking":"hm","signature":""}'
  const text = '{"type":"text","text":"a","n":1.0}'
  const bare = '{"type":"thinking","thinking":"hm"}'
  const bodyOf = (blocks: readonly string[], more = '') =>
    `{"model":"test-model","max_tokens":5,"messages":[{"role":"user","content":"x"}${more}, {"role":"assistant","content":[${blocks.join(', ')}]}]}`
  const sent = async (body: string) => {
    workers[0].requests.length = 0
    await post('/v1/messages', body)
    return workers[0].requestsTo(MESSAGES)[0].body.toString()
  }
  expect(await sent(bodyOf([signed, unsigned, text]))).toBe(
    bodyOf([signed, text]).replace(`${signed}, `, `${signed},  `),
  )
  expect(JSON.parse(await sent(bodyOf([unsigned, text])))).toEqual(JSON.parse(bodyOf([text])))
  expect(JSON.parse(await sent(bodyOf([text, unsigned])))).toEqual(JSON.parse(bodyOf([text])))
  expect(await sent(bodyOf([signed, text]))).toBe(bodyOf([signed, text]))
  expect(JSON.parse(await sent(bodyOf([signed, bare, text])))).toEqual(JSON.parse(bodyOf([signed, text])))
  const alone = `,{"role":"assistant","content":[${unsigned}]}`
  expect(JSON.parse(await sent(bodyOf([text], alone)))).toEqual(JSON.parse(bodyOf([text])))
})

test('the billing line reaches a vendor', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR] })
  workers[0].script(MESSAGES, ANSWER)
  await create({ system: [{ type: 'text', text: 'x-anthropic-billing-header: cc=1' }] })
  expect(workers[0].requestsTo(MESSAGES)[0].body.toString()).toContain('x-anthropic-billing-header: cc=1')
})

test('resolving a virtual model changes only the model of a body', async () => {
  const { create, workers } = await openMessages({
    workers: [VENDOR],
    plugins: { 'virtual-models': { models: { 'claude-*': { targets: [{ model: 'test-model' }] } } } },
  })
  workers[0].script(MESSAGES, ANSWER)
  await create({ model: 'claude-x', extra: 1 })
  expect(workers[0].requestsTo(MESSAGES)[0].json()).toEqual({ ...HELLO, extra: 1 })
})

test('in a mixed fleet Messages workers get the request unchanged and chat workers a translation', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR, {}], kernel: { policy: 'round_robin' } })
  workers[0].script(MESSAGES, ANSWER)
  const seen = new Set<string>()
  for (let i = 0; i < 12; i++) seen.add(((await (await create()).json()) as { id: string }).id.slice(0, 6))
  expect(workers[0].requestsTo(MESSAGES)[0].json()).toEqual(HELLO)
  expect(workers[1].requestsTo(CHAT).length).toBeGreaterThan(0)
  expect(seen.size).toBeGreaterThan(1)
})

test('untranslatable requests go to the Messages workers of a mixed fleet', async () => {
  const { create, workers } = await openMessages({ workers: [{}, VENDOR] })
  workers[1].script(MESSAGES, ANSWER)
  for (let i = 0; i < 4; i++) {
    const reply = await create({ messages: [{ role: 'user', content: [{ type: 'hologram' }] }] })
    expect(await reply.text()).toBe(REPLY)
  }
  expect(workers[0].requestsTo(CHAT)).toEqual([])
})

test('count_tokens is relayed to a worker with the Messages format', async () => {
  const { post, workers } = await openMessages({ workers: [VENDOR] })
  workers[0].script(
    COUNT,
    rawAnswer('{"input_tokens":42}', { headers: { 'content-type': 'application/json' } }),
  )
  const { max_tokens: _, ...body } = HELLO
  const reply = await post('/v1/messages/count_tokens?beta=true', body, {
    'anthropic-beta': 'token-counting',
  })
  expect(await reply.json()).toEqual({ input_tokens: 42 })
  const [sent] = workers[0].requestsTo(COUNT)
  expect([sent.path, sent.header('x-api-key'), sent.header('anthropic-beta')]).toEqual([
    '/v1/messages/count_tokens?beta=true',
    'vendor-key',
    'token-counting',
  ])
})

test('the gateway estimates the count for a worker without the count_tokens route', async () => {
  const { post } = await openMessages({ workers: [VENDOR] })
  const reply = await post('/v1/messages/count_tokens', HELLO)
  expect([reply.status, reply.headers.get('x-weir-token-estimate')]).toEqual([200, 'true'])
})

test('a request is retried on another worker after a dropped connection', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR, VENDOR] })
  workers[0].script(MESSAGES, dropAnswer())
  workers[1].script(MESSAGES, ANSWER)
  for (let i = 0; i < 4; i++) expect((await create()).status).toBe(200)
})
