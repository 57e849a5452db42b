/** Workers that respond 401 or 403: a failure of theirs if they reject the gateway's key, not if they reject the client's. */
import { describe, expect, test } from 'vitest'
import { NATIVE, nativeAnswer } from '../support/responses-script.ts'
import { jsonAnswer, type Script, type ScriptedWorker, sseAnswer } from '../support/scripted-worker.ts'
import { type Fleet, type FleetOptions, openFleet } from './fleet.ts'
import { openGrpcFleet } from './grpc-fleet.ts'
import { CHAT, COUNT, HELLO, MESSAGES, openMessages } from './messages-fleet.ts'
import { chatAnswer, openResponses } from './responses/responses-fleet.ts'

const CODE = 'worker_credentials_rejected'
/** As OpenAI responds, with advice not to retry. */
const rejection = (status = 401) =>
  jsonAnswer(
    { error: { message: 'Incorrect API key', code: 'invalid_api_key' } },
    { status, headers: { 'x-should-retry': 'false', 'retry-after': '30' } },
  )
const QUICK = { initialBackoffMs: 1, maxBackoffMs: 1 }
const chatBody = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const wrong = { api_key: 'wrong', priority: 90 }
const right = { api_key: 'right' }

/** Status and error code of the gateway; null if the response is the worker's. */
async function read(reply: Response) {
  const text = await reply.text()
  return { status: reply.status, code: reply.headers.get('x-weir-error-code'), text }
}

async function failuresOf({ gateway }: Pick<Fleet, 'gateway'>, { url }: { url: string }): Promise<string> {
  const text = await (await fetch(gateway.metricsUrl as string)).text()
  const prefix = `weir_worker_cb_consecutive_failures{worker="${url}"} `
  return (
    text
      .split('\n')
      .find((line) => line.startsWith(prefix))
      ?.slice(prefix.length) ?? 'unknown'
  )
}

/** Two workers, the first of which is preferred and rejects the gateway's key. */
const withKeys = (more: object = {}): FleetOptions => ({
  workers: [{ spec: { ...wrong, ...more } }, { spec: { ...right, ...more } }],
  kernel: { policy: 'least_load', retry: QUICK },
})

interface Lane {
  readonly open: () => Promise<Fleet>
  readonly path: string
  readonly body: object
  /** Route of the worker. */
  readonly route: string
  readonly answer: Script
  /** Status of the format for worker failures. Default 502. */
  readonly failureStatus?: number
}

const chatApis = { apis: ['chat', 'completions', 'generate', 'embeddings', 'rerank'] }
const relayed = (path: string, body: object, answer: object = {}): Lane => ({
  open: () => openFleet(withKeys(chatApis)),
  path,
  body: { model: 'test-model', ...body },
  route: `POST ${path}`,
  answer: jsonAnswer(answer),
})
const ranking = [{ index: 0, score: 0.5, document: 'a' }]
const input = { model: 'test-model', input: 'hi' }

const lanes: Record<string, Lane> = {
  chat: relayed('/v1/chat/completions', { messages: chatBody.messages }),
  'streamed chat': {
    ...relayed('/v1/chat/completions', { messages: chatBody.messages, stream: true }),
    answer: sseAnswer(['[DONE]']),
  },
  completions: relayed('/v1/completions', { prompt: 'hi' }),
  generate: relayed('/generate', { text: 'hi' }),
  embeddings: relayed('/v1/embeddings', { input: 'hi' }),
  rerank: { ...relayed('/v1/rerank', { query: 'q', documents: ['a'] }, ranking) },
  'messages over chat': {
    open: () => openMessages(withKeys()),
    path: '/v1/messages',
    body: HELLO,
    route: CHAT,
    answer: chatAnswer('hi'),
  },
  'native messages': {
    open: () => openMessages(withKeys({ apis: ['messages'] })),
    path: '/v1/messages',
    body: HELLO,
    route: MESSAGES,
    answer: jsonAnswer({ type: 'message' }),
  },
  'streamed native messages': {
    open: () => openMessages(withKeys({ apis: ['messages'] })),
    path: '/v1/messages',
    body: { ...HELLO, stream: true },
    route: MESSAGES,
    answer: sseAnswer(['{"type":"message_stop"}']),
  },
  'responses over chat': {
    open: () => openResponses(undefined, withKeys()),
    path: '/v1/responses',
    body: input,
    route: CHAT,
    answer: chatAnswer('hi'),
    failureStatus: 500,
  },
  'native responses': {
    open: () => openResponses(undefined, { ...withKeys({ apis: ['responses'] }), plugins: {} }),
    path: '/v1/responses',
    body: input,
    route: NATIVE,
    answer: nativeAnswer('hi'),
    failureStatus: 500,
  },
}

describe("the gateway's own key is rejected", () => {
  test.each(Object.keys(lanes))(
    '%s: another worker responds; without one the client receives 502',
    async (name) => {
      const { open, path, body, route, answer, failureStatus = 502 } = lanes[name]
      const fleet = await open()
      const [rejecting, other] = fleet.workers
      rejecting.script(route, rejection())
      other.script(route, answer)
      expect(await read(await fleet.post(path, body))).toMatchObject({ status: 200 })
      expect([rejecting, other].map((worker) => worker.requestsTo(route).length)).toEqual([1, 1])
      expect(await failuresOf(fleet, rejecting)).toBe('1')
      other.script(route, rejection(403))
      const { status, code, text } = await read(await fleet.post(path, body))
      expect([status, code]).toEqual([failureStatus, CODE])
      expect(text).not.toContain('Incorrect API key')
      expect(text).not.toContain(rejecting.url)
      expect(await failuresOf(fleet, rejecting)).toBe('2')
      expect(await failuresOf(fleet, other)).toBe('1')
    },
  )

  test('without retries the breaker counts it too, and excludes the worker at its threshold', async () => {
    const fleet = await openFleet({
      ...withKeys(),
      kernel: { policy: 'least_load', retry: { maxAttempts: 1 }, breaker: { failureThreshold: 3 } },
    })
    fleet.workers[0].script(CHAT, rejection())
    const statuses: number[] = []
    for (let nth = 0; nth < 6; nth++)
      statuses.push((await fleet.post('/v1/chat/completions', chatBody)).status)
    expect(statuses).toEqual([502, 502, 502, 200, 200, 200])
  })

  test('a rejected token count of a single worker is not an error of the client either', async () => {
    const fleet = await openMessages(withKeys({ apis: ['messages'] }))
    fleet.workers[0].script(COUNT, rejection())
    const reply = await read(await fleet.post('/v1/messages/count_tokens', HELLO))
    expect([reply.status, reply.code]).toEqual([502, CODE])
  })

  test('a worker without a key counts as having a key of the gateway if the client cannot provide one', async () => {
    const fleet = await openFleet({
      workers: [{ spec: { priority: 90 } }, {}],
      plugins: { auth: { apiKey: 'gateway-key' } },
    })
    fleet.workers[0].script(CHAT, rejection())
    const headers = { authorization: 'Bearer gateway-key' }
    expect((await fleet.post('/v1/chat/completions', chatBody, headers)).status).toBe(200)
    expect(await failuresOf(fleet, fleet.workers[0])).toBe('1')
  })

  test('so does a worker without a key if client credentials are not forwarded', async () => {
    const fleet = await openFleet({ kernel: { upstream: { forwardHeaders: [] } } })
    fleet.workers[0].script(CHAT, rejection())
    const headers = { authorization: 'Bearer of-the-client' }
    const reply = await read(await fleet.post('/v1/chat/completions', chatBody, headers))
    expect([reply.status, reply.code]).toEqual([502, CODE])
  })

  test.each(['least_load', 'cache_aware'])('%s: of 100 requests to 4 workers none fails', async (policy) => {
    const fleet = await openFleet({
      workers: [{ spec: right }, { spec: { api_key: 'wrong' } }, { spec: right }, { spec: right }],
      kernel: { policy },
    })
    fleet.workers[1].script(CHAT, rejection())
    const send = async (nth: number) => {
      const messages = [{ role: 'user', content: `${nth % 7} as a number` }]
      return (await fleet.post('/v1/chat/completions', { model: 'test-model', messages })).status
    }
    const statuses: number[] = []
    for (let nth = 0; nth < 100; nth += 4)
      statuses.push(...(await Promise.all([nth, nth + 1, nth + 2, nth + 3].map(send))))
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    expect(fleet.workers[1].requestsTo(CHAT).length).toBeLessThan(20)
  })
})

describe("the client's own credential is rejected", () => {
  const unchanged = async (fleet: Fleet, worker: ScriptedWorker, path: string, headers: object) => {
    const reply = await fleet.post(path, path === '/v1/messages' ? HELLO : chatBody, { ...headers })
    expect(reply.status).toBe(401)
    expect(await reply.json()).toMatchObject({ error: { code: 'invalid_api_key' } })
    expect(await failuresOf(fleet, worker)).toBe('0')
    expect(fleet.workers.map(({ requests }) => requests.length)).toEqual([1, 0])
  }
  const keyless = { workers: [{ spec: { priority: 90 } }, {}] }

  test.each([
    ['is passed on to a worker without a key', { authorization: 'Bearer of-the-client' }],
    ['would have been passed on, and was not sent', {}],
  ])('%s: the response is passed on', async (_how, headers) => {
    const fleet = await openFleet(keyless)
    fleet.workers[0].script(CHAT, rejection())
    await unchanged(fleet, fleet.workers[0], '/v1/chat/completions', headers)
  })

  test('a service receives it in its own header: the response is passed on', async () => {
    const service = { runtime_type: 'external', provider: 'anthropic', labels: { provider: 'anthropic' } }
    const workers = [{ spec: { ...service, priority: 90 } }, { spec: service }]
    const fleet = await openMessages({ workers })
    fleet.workers[0].script(MESSAGES, rejection())
    await unchanged(fleet, fleet.workers[0], '/v1/messages', { 'x-api-key': 'of-the-client' })
  })

  test("an allowed header carries it in addition to the worker's key: the response is passed on", async () => {
    const upstream = { forwardHeaders: ['authorization', 'x-tenant-token'] }
    const fleet = await openFleet({ ...withKeys(), kernel: { upstream } })
    fleet.workers[0].script(CHAT, rejection())
    await unchanged(fleet, fleet.workers[0], '/v1/chat/completions', { 'x-tenant-token': 'of-the-client' })
  })
})

describe('pairs', () => {
  test.each(['prefill', 'decode'])(
    'HTTP: the %s worker rejects the key, and another pair answers',
    async (leg) => {
      const spec = (worker_type: string, more: object) => ({
        spec: { worker_type, bootstrap_port: 9_000, ...more },
      })
      const other = leg === 'prefill' ? 'decode' : 'prefill'
      const fleet = await openFleet({
        workers: [spec(leg, wrong), spec(leg, right), spec(other, right)],
        kernel: { retry: QUICK },
      })
      const [rejecting, spare] = fleet.workers
      rejecting.script(CHAT, rejection())
      expect((await fleet.post('/v1/chat/completions', chatBody)).status).toBe(200)
      expect(await failuresOf(fleet, rejecting)).toBe('1')
      spare.script(CHAT, rejection(403))
      const reply = await read(await fleet.post('/v1/chat/completions', chatBody))
      expect([reply.status, reply.code]).toEqual([502, CODE])
      expect(await failuresOf(fleet, fleet.workers[2])).toBe('0')
    },
  )

  test.each(['prefill', 'decode'])('gRPC: the %s engine rejects the key', async (leg) => {
    const other = leg === 'prefill' ? 'decode' : 'prefill'
    const fleet = await openGrpcFleet({
      engines: [{ spec: { worker_type: leg, ...wrong } }, { spec: { worker_type: other, ...right } }],
    })
    fleet.engines[0].script = () => [{ status: 16, details: 'who are you' }]
    fleet.engines[1].script = () => [{ hang: true }]
    const reply = await read(await fleet.post('/v1/chat/completions', chatBody))
    expect([reply.status, reply.code]).toEqual([502, CODE])
    expect(await failuresOf(fleet, fleet.engines[0])).toBe('1')
    expect(await failuresOf(fleet, fleet.engines[1])).toBe('0')
  })
})

describe('gRPC', () => {
  test.each([
    ['UNAUTHENTICATED', 16],
    ['PERMISSION_DENIED', 7],
  ])('%s: another engine answers; without one the client reads 502', async (_name, status) => {
    const fleet = await openGrpcFleet({ engines: [{ spec: wrong }, { spec: right }] })
    const [rejecting, other] = fleet.engines
    rejecting.script = () => [{ status, details: 'who are you' }]
    other.answer([await fleet.ids('Hello')])
    expect((await fleet.post('/v1/chat/completions', chatBody)).status).toBe(200)
    expect(await failuresOf(fleet, rejecting)).toBe('1')
    other.script = rejecting.script
    const reply = await read(await fleet.post('/v1/chat/completions', chatBody))
    expect([reply.status, reply.code]).toEqual([502, CODE])
    expect(reply.text).not.toContain('who are you')
  })

  test('a rejected client credential is passed on', async () => {
    const fleet = await openGrpcFleet()
    fleet.engines[0].script = () => [{ status: 16, details: 'who are you' }]
    const headers = { authorization: 'Bearer of-the-client' }
    const reply = await read(await fleet.post('/v1/chat/completions', chatBody, headers))
    expect([reply.status, reply.code]).toEqual([401, 'engine_unauthenticated'])
    expect(await failuresOf(fleet, fleet.engines[0])).toBe('0')
  })
})
