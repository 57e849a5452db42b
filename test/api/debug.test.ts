/** Records of past requests for operators, and the Server-Timing header. */
import { afterEach, expect, test } from 'vitest'
import { type HookedOptions, openHooked } from '../support/hooked-gateway.ts'
import { dropAnswer, jsonAnswer, sseAnswer, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

async function open(debug: Record<string, unknown> = {}, options: HookedOptions = {}) {
  const hooked = await openHooked(() => {}, {
    ...options,
    plugins: { auth: {}, policies: {}, chat: {}, debug, ...options.plugins },
  })
  cleanups.push(() => hooked.close())
  hooked.worker.script(CHAT, jsonAnswer({ fine: true }))
  const chat = (headers: Record<string, string> = {}) =>
    fetch(`${hooked.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'a secret' }] }),
    })
  const read = (id: string) => fetch(`${hooked.gateway.url}/debug/requests/${id}`)
  return { hooked, chat, read }
}

interface Shown {
  requests: { attempts: Record<string, unknown>[] }[]
}

test('a served request shows its worker, the pick and its timings', async () => {
  const { hooked, chat, read } = await open({}, { kernel: { policy: 'least_load' } })
  await (await chat({ 'x-request-id': 'one' })).text()
  const reply = await read('one')
  expect(reply.status).toBe(200)
  const text = await reply.text()
  const { requests } = JSON.parse(text) as Shown
  expect(requests[0]).toMatchObject({
    request_id: 'one',
    method: 'POST',
    route: '/v1/chat/completions',
    model: 'm',
    status: 200,
    error_code: null,
    is_aborted: false,
  })
  const [attempt] = requests[0].attempts
  expect(attempt).toMatchObject({
    number: 1,
    worker_url: hooked.worker.url,
    policy: 'least_load',
    status: 200,
    outcome: 'success',
  })
  expect(attempt.candidates).toMatchObject([
    { url: hooked.worker.url, breaker: 'closed', is_available: true },
  ])
  expect(text).not.toContain('a secret')
})

test('a request that waited for admission shows its time in the queue, and the load of the candidates', async () => {
  const { hooked, chat, read } = await open(
    {},
    { plugins: { limits: { maxConcurrentRequests: 1, queueSize: 1, queueTimeoutMs: 60_000 } } },
  )
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  hooked.worker.script(CHAT, async () => {
    await released
    return jsonAnswer({ fine: true })
  })
  const first = chat({ 'x-request-id': 'first' })
  await expect.poll(() => hooked.worker.requestsTo(CHAT).length).toBe(1)
  const second = chat({ 'x-request-id': 'second' })
  await expect.poll(async () => (await chat({ 'x-request-id': 'third' })).status).toBe(429)
  release()
  expect([(await first).status, (await second).status]).toEqual([200, 200])
  const shown = async (id: string) =>
    ((await (await read(id)).json()) as { requests: Record<string, unknown>[] }).requests[0]
  expect(await shown('first')).toMatchObject({
    steps: [],
    attempts: [{ candidates: [{ in_flight: 0, load_score: 1 }] }],
  })
  const { steps, duration_ms } = await shown('second')
  expect(steps).toEqual([
    {
      kind: 'queue',
      name: 'limits',
      start_ms: expect.any(Number),
      duration_ms: expect.any(Number),
      calls: 1,
      error: null,
    },
  ])
  const [{ duration_ms: waitedMs }] = steps as { duration_ms: number }[]
  expect(waitedMs).toBeGreaterThan(0)
  expect(waitedMs).toBeLessThanOrEqual(duration_ms as number)
})

test('a retried request shows each attempt with its failure', async () => {
  const other = await startScriptedWorker()
  cleanups.push(() => other.close())
  other.script(CHAT, jsonAnswer({ from: 'other' }))
  const { hooked, chat, read } = await open(
    {},
    {
      others: [{ url: other.url }],
      kernel: { policy: 'round_robin', retry: { initialBackoffMs: 1 } },
    },
  )
  hooked.worker.script(CHAT, dropAnswer())
  expect((await chat({ 'x-request-id': 'two' })).status).toBe(200)
  const { requests } = (await (await read('two')).json()) as Shown
  expect(requests[0].attempts).toMatchObject([
    { number: 1, worker_url: hooked.worker.url, status: null, outcome: 'retried' },
    { number: 2, worker_url: other.url, status: 200, failure: null, outcome: 'success' },
  ])
})

test('an unknown id is 404 in the admin error format', async () => {
  const { read } = await open()
  const reply = await read('missing')
  expect([reply.status, await reply.json()]).toMatchObject([404, { error: { code: 'request_not_found' } }])
})

test('only operators have access', async () => {
  const { hooked, read } = await open(
    {},
    { plugins: { auth: { apiKey: 'k', controlPlaneKeys: ['1:op:admin:boss', '2:eye:user:look'] } } },
  )
  const as = async (key: string) =>
    (await fetch(`${hooked.gateway.url}/debug/requests/x`, { headers: { authorization: `Bearer ${key}` } }))
      .status
  expect([(await read('x')).status, await as('k'), await as('look'), await as('boss')]).toEqual([
    401, 401, 403, 404,
  ])
})

test('Server-Timing is sent on request, on streams too', async () => {
  const { hooked, chat } = await open()
  expect((await chat()).headers.get('server-timing')).toBeNull()
  const pattern = /^gateway;dur=[\d.]+, total;dur=[\d.]+, upstream;dur=[\d.]+$/
  expect((await chat({ 'x-weir-server-timing': '1' })).headers.get('server-timing')).toMatch(pattern)
  hooked.worker.script(CHAT, sseAnswer(['1', '[DONE]']))
  const stream = await chat({ 'x-weir-server-timing': '1' })
  expect(stream.headers.get('server-timing')).toMatch(pattern)
  expect(await stream.text()).toBe('data: 1\n\ndata: [DONE]\n\n')
})

test('Server-Timing can be always on or off', async () => {
  expect((await (await open({ serverTiming: 'always' })).chat()).headers.get('server-timing')).not.toBeNull()
  const off = await open({ serverTiming: 'off' })
  expect((await off.chat({ 'x-weir-server-timing': '1' })).headers.get('server-timing')).toBeNull()
})

test('long names from clients are truncated, and can still be found', async () => {
  const { hooked, read } = await open()
  const id = 'i'.repeat(2_000)
  await hooked.relay({ model: 'm'.repeat(4_000) }, { headers: { 'x-request-id': id } })
  await expect.poll(async () => (await read(id)).status).toBe(200)
  const { requests } = (await (await read(id)).json()) as {
    requests: { request_id: string; model: string }[]
  }
  expect(requests[0].request_id).toBe(id.slice(0, 256))
  expect(requests[0].model).toBe('m'.repeat(256))
})

test('past requests are listed by tenant, model, worker and status, in pages', async () => {
  const { hooked } = await open()
  const list = async (query = '') => {
    const response = await fetch(`${hooked.gateway.url}/debug/requests?${query}`)
    return [response.status, (await response.json()) as Listed] as const
  }
  interface Listed {
    requests: { request_id: string; model: string; status: number }[]
    has_more: boolean
    last_id: string | null
    error?: { code: string; message: string; param: string }
  }
  expect((await list())[1]).toEqual({ requests: [], has_more: false, last_id: null })
  for (const [index, model] of ['m', 'm', '<b>', 'm'].entries()) {
    hooked.worker.script(CHAT, jsonAnswer({ fine: true }, { status: index === 3 ? 400 : 200 }))
    const headers = { 'x-request-id': `r${index}` }
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'a secret' }] })
    await (await fetch(`${hooked.gateway.url}/v1/chat/completions`, { method: 'POST', headers, body })).text()
  }
  const ids = async (query: string) => (await list(query))[1].requests.map(({ request_id }) => request_id)
  await expect.poll(() => ids('')).toEqual(['r3', 'r2', 'r1', 'r0'])
  expect(JSON.stringify(await list())).not.toContain('a secret')
  expect(await ids(`model=${encodeURIComponent('<b>')}`)).toEqual(['r2'])
  expect(await ids('status=4xx')).toEqual(['r3'])
  expect(await ids('status=200&model=m')).toEqual(['r1', 'r0'])
  expect(await ids('tenant=anonymous')).toHaveLength(4)
  expect(await ids('tenant=auth:other')).toEqual([])
  expect(await ids(`worker=${encodeURIComponent(hooked.worker.url)}`)).toEqual(['r3', 'r2', 'r1', 'r0'])
  expect(await ids('worker=http://other:1')).toEqual([])

  const [, first] = await list('limit=3')
  expect([first.requests.length, first.has_more]).toEqual([3, true])
  const [, second] = await list(`limit=3&after=${first.last_id}`)
  expect([second.requests.map(({ request_id }) => request_id), second.has_more]).toEqual([['r0'], false])
  expect(await ids(`after=${second.last_id}`)).toEqual([])

  for (const [param, value] of Object.entries({ limit: '0', after: '-1', status: '<script>' })) {
    const [status, { error }] = await list(`${param}=${encodeURIComponent(value)}`)
    expect([status, error?.code, error?.param]).toEqual([400, 'invalid_query', param])
    expect(error?.message).toContain(`(got "${value}")`)
  }
})
