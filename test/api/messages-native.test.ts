/** POST /v1/messages over chat engines that describe a Messages route: relay where the route exists, translation where not. */
import { expect, test } from 'vitest'
import { jsonAnswer, rawAnswer, sseAnswer, streamAnswer } from '../support/scripted-worker.ts'
import {
  accumulate,
  CHAT,
  COUNT,
  HELLO,
  MESSAGES,
  NATIVE,
  openMessages,
  readEvents,
  VENDOR,
} from './messages-fleet.ts'

const REPLY = '{"id":"msg_e","type":"message","usage":{"input_tokens":1.0},"new":{"a":[1,2]}}'
const ANSWER = rawAnswer(REPLY, { headers: { 'content-type': 'application/json' } })
const NO_ROUTE = jsonAnswer({ detail: 'Not Found' }, { status: 404 })
const chunk = (delta: object, reason: string | null = null) =>
  JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })

test('messages over an engine: bodies are relayed byte for byte in both directions, from the first request on', async () => {
  const { post, workers } = await openMessages({ workers: [NATIVE] })
  workers[0].script(MESSAGES, ANSWER)
  const body = `{ "model":"test-model", "max_tokens": 9, "messages":[{"role":"user","content":[{"type":"hologram","n":1.0}]}], "brand_new": {"x":1e2} }`
  for (const nth of [1, 2]) {
    const reply = await post('/v1/messages?beta=true', body, { 'anthropic-beta': 'a,b' })
    expect(await reply.text()).toBe(REPLY)
    expect(reply.headers.get('request-id')).toMatch(/^req_/)
    const sent = workers[0].requestsTo(MESSAGES)[nth - 1]
    expect([sent.body.toString(), sent.path]).toEqual([body, '/v1/messages?beta=true'])
  }
  expect(workers[0].requestsTo(CHAT)).toEqual([])
})

test('messages over an engine: streams are relayed byte for byte', async () => {
  const { create, workers } = await openMessages({ workers: [NATIVE] })
  const frames = [
    'event: message_start\ndata: {"type":"message_start" , "x":1.0}\n\n',
    'event: new\ndata: {}\n\n',
    'data: {"type": "message_stop", "metrics": {"ms": 1.0}}\n\n',
  ]
  workers[0].script(MESSAGES, streamAnswer(frames, { headers: { 'content-type': 'text/event-stream' } }))
  for (let nth = 0; nth < 2; nth++)
    expect(await (await create({ stream: true })).text()).toBe(frames.join(''))
})

test("messages over an engine: the gateway's key is not forwarded, the worker's own key is sent", async () => {
  const { create, workers } = await openMessages({
    workers: [{ ...NATIVE, spec: { api_key: 'engine-key' } }],
    plugins: { auth: { apiKey: 'gateway-key' } },
  })
  workers[0].script(MESSAGES, ANSWER)
  await create({}, { 'x-api-key': 'gateway-key' })
  await create({}, { authorization: 'Bearer gateway-key' })
  const sent = workers[0].requestsTo(MESSAGES)
  expect(sent).toHaveLength(2)
  expect(sent.map((one) => one.header('authorization'))).toEqual(['Bearer engine-key', 'Bearer engine-key'])
  expect(JSON.stringify(sent.map(({ rawHeaders }) => rawHeaders))).not.toContain('gateway-key')
})

test('messages over an engine: version, beta and scope headers are forwarded, one line each', async () => {
  const { create, post, workers } = await openMessages({ workers: [NATIVE] })
  workers[0].script(MESSAGES, ANSWER)
  workers[0].script(COUNT, jsonAnswer({ input_tokens: 7 }))
  const scope = { 'anthropic-user-profile-id': 'up_1', 'anthropic-workspace-id': 'ws_1' }
  // Covers a first request, which is parsed, a later one, which is only relayed, and a token count.
  await create({}, { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'a-1, b-2', ...scope })
  await create({}, { 'anthropic-beta': 'c-3' })
  await post('/v1/messages/count_tokens', HELLO, { 'anthropic-beta': 'token-counting-1' })
  const [first, second] = workers[0].requestsTo(MESSAGES)
  const namesOf = ({ rawHeaders }: typeof first) =>
    Object.fromEntries(rawHeaders.filter(([name]) => name.startsWith('anthropic-')))
  expect(namesOf(first)).toEqual({
    'anthropic-version': '2026-10-21',
    'anthropic-beta': 'a-1, b-2',
    ...scope,
  })
  expect(namesOf(second)).toEqual({ 'anthropic-version': '2023-06-01', 'anthropic-beta': 'c-3' })
  expect(workers[0].requestsTo(COUNT)[0].header('anthropic-beta')).toBe('token-counting-1')
})

test('messages over an engine: error responses are relayed unchanged', async () => {
  const { create, workers } = await openMessages({ workers: [NATIVE], kernel: { retry: { maxAttempts: 1 } } })
  for (const status of [400, 429, 500, 503]) {
    const said = `{"type":"error","error":{"type":"x","message":"m","extra":${status}.0}}`
    workers[0].script(MESSAGES, rawAnswer(said, { status, headers: { 'content-type': 'application/json' } }))
    const reply = await create()
    expect([reply.status, await reply.text()]).toEqual([status, said])
  }
  expect(workers[0].requestsTo(CHAT)).toEqual([])
})

test.each([
  ['404', NO_ROUTE],
  ['405', jsonAnswer({ detail: 'Method Not Allowed' }, { status: 405 })],
])('an engine without the route (%s) gets chat requests from then on', async (_status, refusal) => {
  const { create, get, workers } = await openMessages({ workers: [NATIVE] })
  workers[0].script(MESSAGES, refusal)
  const whole = (await (await create()).json()) as { type: string; content: object[] }
  expect(whole).toMatchObject({
    type: 'message',
    content: [{ type: 'text', text: 'Hello from the worker.' }],
  })
  workers[0].script(CHAT, sseAnswer([chunk({ content: 'Hi' }), chunk({}, 'stop'), '[DONE]']))
  const streamedMessage = accumulate(readEvents(await (await create({ stream: true })).text()))
  expect(streamedMessage.content).toEqual([{ type: 'text', text: 'Hi' }])
  expect([workers[0].requestsTo(MESSAGES).length, workers[0].requestsTo(CHAT).length]).toEqual([1, 2])
  const { workers: listed } = (await (await get('/workers')).json()) as { workers: { load: number }[] }
  expect(listed.map(({ load }) => load)).toEqual([0])
})

test('a streamed request falls back to chat, and only for the engine without the route', async () => {
  const { create, workers } = await openMessages({
    workers: [NATIVE, NATIVE],
    kernel: { policy: 'round_robin' },
  })
  workers[0].script(MESSAGES, NO_ROUTE)
  workers[1].script(MESSAGES, ANSWER)
  for (const { script } of [workers[0], workers[1]].map((worker) => ({ script: worker.script.bind(worker) })))
    script(CHAT, sseAnswer([chunk({ content: 'Hi' }), chunk({}, 'stop'), '[DONE]']))
  for (let nth = 0; nth < 8; nth++) expect((await create({ stream: true })).status).toBe(200)
  expect(workers[0].requestsTo(MESSAGES)).toHaveLength(1)
  expect(workers[1].requestsTo(MESSAGES).length).toBeGreaterThan(2)
})

test('a 404 of an engine with the route, or of a vendor, is relayed', async () => {
  const { create, workers } = await openMessages({ workers: [NATIVE] })
  workers[0].once(MESSAGES, ANSWER)
  workers[0].script(MESSAGES, NO_ROUTE)
  expect((await create()).status).toBe(200)
  expect((await create()).status).toBe(404)
  expect(workers[0].requestsTo(CHAT)).toEqual([])
  const vendor = await openMessages({ workers: [VENDOR], plugins: {} })
  vendor.workers[0].script(MESSAGES, NO_ROUTE)
  expect((await vendor.create()).status).toBe(404)
  expect(vendor.workers[0].requests).toHaveLength(1)
})

test('messages over an engine: unsigned thinking is sent back unchanged', async () => {
  const { post, workers } = await openMessages({ workers: [NATIVE] })
  workers[0].script(MESSAGES, ANSWER)
  const body = JSON.stringify({
    ...HELLO,
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: '' },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'user', content: 'c' },
    ],
  })
  for (let nth = 0; nth < 2; nth++) await post('/v1/messages', body)
  expect(workers[0].requestsTo(MESSAGES).map((sent) => sent.body.toString())).toEqual([body, body])
})

test('unsigned thinking is removed from a conversation that moves to the vendor of a mixed fleet', async () => {
  const { create, workers } = await openMessages({ workers: [VENDOR, {}], kernel: { policy: 'round_robin' } })
  workers[0].script(MESSAGES, ANSWER)
  const thinking = { type: 'thinking', thinking: 'hm', signature: '' }
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: [thinking, { type: 'text', text: 'b' }] },
    { role: 'user', content: 'c' },
  ]
  for (let nth = 0; nth < 6; nth++) expect((await create({ messages })).status).toBe(200)
  const [sent] = workers[0].requestsTo(MESSAGES)
  expect(sent.body.toString()).not.toContain('"thinking"')
  const { messages: chat } = workers[1].requestsTo(CHAT)[0].json() as { messages: object[] }
  expect(chat[1]).toEqual({ role: 'assistant', content: 'b', reasoning_content: 'hm' })
})

test('messages over an engine: count_tokens is relayed, or estimated by the gateway if the engine lacks the route', async () => {
  const { post, workers } = await openMessages({ workers: [NATIVE] })
  workers[0].once(
    COUNT,
    rawAnswer('{"input_tokens":42}', { headers: { 'content-type': 'application/json' } }),
  )
  const count = async () => (await post('/v1/messages/count_tokens', HELLO)).json()
  expect(await count()).toEqual({ input_tokens: 42 })
  expect(await count()).toEqual({ input_tokens: expect.any(Number) })
})

const HOLOGRAM = { messages: [{ role: 'user', content: [{ type: 'hologram' }] }] }

test.each([
  ['whole', false],
  ['streamed', true],
])(
  'an engine without the route never gets an empty chat (%s): untranslatable content is rejected by path',
  async (_way, stream) => {
    const { create, workers } = await openMessages({ workers: [NATIVE] })
    workers[0].script(MESSAGES, NO_ROUTE)
    // The first request detects that the route is missing, the second one knows it.
    for (const more of [HOLOGRAM, HOLOGRAM, { max_tokens: 0 }]) {
      const reply = await create({ stream, ...more })
      const { error } = (await reply.json()) as { error: { type: string; message: string } }
      expect([reply.status, error.type]).toEqual([400, 'invalid_request_error'])
      expect(error.message).toContain('max_tokens' in more ? 'max_tokens' : 'messages.0.content.0')
    }
    expect([workers[0].requestsTo(MESSAGES).length, workers[0].requestsTo(CHAT).length]).toEqual([1, 0])
  },
)

test('if one of two engines lacks the route, the other one gets untranslatable requests', async () => {
  const { create, workers } = await openMessages({
    workers: [NATIVE, NATIVE],
    kernel: { policy: 'round_robin' },
  })
  workers[0].script(MESSAGES, NO_ROUTE)
  workers[1].script(MESSAGES, ANSWER)
  for (let nth = 0; nth < 4; nth++) expect(await (await create(HOLOGRAM)).text()).toBe(REPLY)
  expect(workers[0].requestsTo(MESSAGES).length).toBeLessThan(2)
  expect(workers.flatMap((worker) => worker.requestsTo(CHAT))).toEqual([])
  // A failure of the engine with the route is relayed.
  workers[1].script(MESSAGES, jsonAnswer({ type: 'error' }, { status: 500 }))
  expect((await create(HOLOGRAM)).status).toBe(500)
})
