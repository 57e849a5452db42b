/** Outgoing HTTP of modules over real sockets: permitted origins, results, and no blocking of other requests. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { RequestContext } from '#kernel'
import { runCase } from '../../plugins/wasm/testing/run-cases.ts'
import { guestBytes } from '../fixtures/wasm/guest-build.ts'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { plugin } from '../support/hooked-gateway.ts'
import { sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

interface Received {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** An HTTP service for modules; `received` has the requests. */
async function openService(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      received.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      answer(request, response)
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { origin: `http://127.0.0.1:${port}`, port, received, server }
}

/** The first thread of modules starts slowly on a loaded machine. */
const GENEROUS = { timeoutMs: 20_000 }

const respondWith = (text: string) => (_: IncomingMessage, response: ServerResponse) =>
  void response.end(text)

interface Order {
  readonly url: string
  readonly method?: string
  readonly headers?: readonly (readonly [string, string])[]
  readonly timeout_ms?: number
  readonly state?: string
}

/** Configuration of a guest that fetches. */
const fetching = (order: Order, more: Record<string, string> = {}) => ({
  do: 'fetch',
  head: JSON.stringify({ action: 'fetch', ...order }),
  ...more,
})

/** The fetch result as passed to the guest, which echoes its input. */
async function shown(reply: Response) {
  const text = await reply.text()
  const start = text.indexOf('"fetched":') + 10
  const end = text.indexOf('},', start) + 1
  return {
    fetched: JSON.parse(text.slice(start, end)) as {
      error: string | null
      status: number
      headers: string[][]
    },
    rest: text.slice(end),
    text,
  }
}

async function errorOf(fleet: WasmFleet) {
  return (await shown(await fleet.chat())).fetched.error
}

const NEEDS = { needs: { request_body: true } }

test.each(['pool', 'inline'] as const)(
  'a module fetches and is called again with the answer, its state and its own input (%s)',
  async (placement) => {
    const { origin, received } = await openService((_, response) => {
      response.setHeader('x-verdict', 'fine')
      response.end('the answer, größe')
    })
    const fleet = await openWasmFleet({ ...GENEROUS, fetch: { timeoutMs: 20_000, origins: [origin] } })
    const order = {
      url: `${origin}/check?a=1`,
      method: 'POST',
      headers: [
        ['x-key', 'größe'],
        ['connection', 'close'],
      ] as const,
      state: 'kept ü',
    }
    const config = fetching(order, { body: 'the body, ü' })
    await fleet.attach('requester', 'OnRequest', config, { allowed_hosts: [origin], placement, ...NEEDS })
    const { fetched, rest } = await shown(await fleet.chat({ model: 'test-model', messages: [] }))
    expect([fetched.error, fetched.status]).toEqual([null, 200])
    expect(fetched.headers).toContainEqual(['x-verdict', 'fine'])
    expect(rest).toBe(',"state":"kept ü"}{"model":"test-model","messages":[]}the answer, größe')
    expect(received).toMatchObject([{ method: 'POST', url: '/check?a=1', body: 'the body, ü' }])
    expect(Buffer.from(received[0].headers['x-key'] as string, 'latin1').toString()).toBe('größe')
    expect(fleet.workers[0].requests).toHaveLength(0)
    const metrics = await fleet.metrics()
    expect(metrics.get('weir_wasm_fetches_total{module="requester",outcome="answered"}')).toBe(1)
  },
)

test('only origins listed by both operator and registration are reachable, with the listed methods', async () => {
  const [one, other] = [await openService(respondWith('one')), await openService(respondWith('other'))]
  const fleet = await openWasmFleet({
    ...GENEROUS,
    fetch: { timeoutMs: 20_000, origins: [one.origin, other.origin], methods: ['GET'] },
  })
  const at = async (name: string, order: Order) => {
    const uuid = await fleet.attach(name, 'OnRequest', fetching(order), { allowed_hosts: [one.origin] })
    const error = await errorOf(fleet)
    await fleet.remove(uuid)
    return error
  }
  expect(await at('listed', { url: `${one.origin}/` })).toBeNull()
  expect(await at('not-registered', { url: `${other.origin}/` })).toBe('not_allowed')
  expect(await at('not-listed', { url: 'http://127.0.0.1:1/' })).toBe('not_allowed')
  expect(await at('method', { url: `${one.origin}/`, method: 'DELETE' })).toBe('not_allowed')
  expect(await at('other-scheme', { url: `https://127.0.0.1:${one.port}/` })).toBe('not_allowed')
  expect(await at('user', { url: `http://user@127.0.0.1:${one.port}/` })).toBe('invalid')
  expect(await at('file', { url: 'file:///etc/passwd' })).toBe('invalid')
  expect([one.received.length, other.received.length]).toEqual([1, 0])
  const unlisted = await fleet.folder.module(
    'x',
    ['OnRequest'],
    {},
    { allowed_hosts: ['https://example.org'] },
  )
  const { status, results } = await fleet.register(unlisted)
  expect([status, JSON.stringify(results)]).toEqual([
    400,
    expect.stringContaining('does not list https://example.org'),
  ])
})

test('a redirect to another host is returned, not followed', async () => {
  const other = await openService(respondWith('secret'))
  const one = await openService((_, response) => {
    response.writeHead(302, { location: `${other.origin}/` })
    response.end()
  })
  const fleet = await openWasmFleet({ ...GENEROUS, fetch: { timeoutMs: 20_000, origins: [one.origin] } })
  await fleet.attach('requester', 'OnRequest', fetching({ url: one.origin }), { allowed_hosts: [one.origin] })
  const { fetched, text } = await shown(await fleet.chat())
  expect([fetched.status, text.includes('secret'), other.received.length]).toEqual([302, false, 0])
  expect(fetched.headers).toContainEqual(['location', `${other.origin}/`])
})

test('a name that resolves to a private network is rejected unless the network is listed', async () => {
  const { port, received } = await openService(respondWith('inside'))
  const origin = `http://localhost:${port}`
  const more = { allowed_hosts: [origin] }
  const closed = await openWasmFleet({ ...GENEROUS, fetch: { timeoutMs: 20_000, origins: [origin] } })
  await closed.attach('requester', 'OnRequest', fetching({ url: origin }), more)
  expect([await errorOf(closed), received.length]).toEqual(['not_allowed', 0])
  const open = await openWasmFleet({
    fetch: { origins: [origin], privateNetworks: ['127.0.0.0/8', '::1/128'] },
  })
  await open.attach('requester', 'OnRequest', fetching({ url: origin }), more)
  expect([await errorOf(open), received.length]).toEqual([null, 1])
})

test('too large requests and responses, and unreachable servers, are reported as such', async () => {
  const large = await openService(respondWith('x'.repeat(2_000)))
  const gone = await openService(respondWith(''))
  await new Promise((resolve) => gone.server.close(resolve))
  const fleet = await openWasmFleet({
    fetch: { origins: [large.origin, gone.origin], maxResponseBytes: 1_000, maxRequestBytes: 10 },
  })
  const more = { allowed_hosts: [large.origin, gone.origin] }
  const at = async (name: string, config: Record<string, string>) => {
    const uuid = await fleet.attach(name, 'OnRequest', config, more)
    const error = await errorOf(fleet)
    await fleet.remove(uuid)
    return error
  }
  expect(await at('answer', fetching({ url: large.origin }))).toBe('too_large')
  expect(await at('request', fetching({ url: large.origin, method: 'POST' }, { body: 'x'.repeat(11) }))).toBe(
    'too_large',
  )
  expect(await at('gone', fetching({ url: gone.origin }))).toBe('unreachable')
})

test('a server that never responds blocks no thread: other requests are served, and each fetch times out', async () => {
  const { origin, received } = await openService(() => {})
  const fleet = await openWasmFleet({
    fetch: { origins: [origin], timeoutMs: 4_000, maxOpen: 8 },
  })
  const slow = fetching({ url: origin }, { when: 'slow' })
  await fleet.attach('requester', 'OnRequest', slow, { allowed_hosts: [origin], ...NEEDS })
  await fleet.attach('header', 'OnRequest', {
    head: JSON.stringify({ action: 'modify', headers_set: [['x-seen', '1']] }),
  })
  await fleet.chat()
  const begunAtMs = performance.now()
  const waiting = Array.from({ length: 10 }, () => fleet.chat({ model: 'test-model', note: 'slow' }))
  await expect.poll(() => received.length).toBe(8)
  for (let i = 0; i < 20; i++) expect((await fleet.chat()).status).toBe(200)
  const servedAfterMs = performance.now() - begunAtMs
  const errors = await Promise.all(waiting.map(async (reply) => (await shown(await reply)).fetched.error))
  expect(errors.sort()).toEqual(['busy', 'busy', ...Array.from({ length: 8 }, () => 'timeout')])
  expect(servedAfterMs).toBeLessThan(performance.now() - begunAtMs)
  expect(performance.now() - begunAtMs).toBeLessThan(12_000)
})

test('a client disconnect ends the fetch', async () => {
  const { origin, received, server } = await openService(() => {})
  const fleet = await openWasmFleet({ fetch: { origins: [origin], timeoutMs: 25_000 } })
  await fleet.attach('requester', 'OnRequest', fetching({ url: origin }), { allowed_hosts: [origin] })
  const leave = new AbortController()
  const reply = fetch(`${fleet.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body: '{"model":"test-model","messages":[]}',
    signal: leave.signal,
  })
  reply.catch(() => {})
  await expect.poll(() => received.length).toBe(1)
  leave.abort()
  const connections = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))
  await expect.poll(connections).toBe(0)
})

test('a failed request ends its fetch, but not the one of an OnError module', async () => {
  let isAborted = false
  const { origin, received } = await openService((request, response) => {
    if (request.url === '/error') response.end('logged')
    else
      response.on('close', () => {
        isAborted = true
      })
  })
  const requests: RequestContext[] = []
  const preempts = plugin('preempts', (host) => {
    const routes = ({ access }: { access: string }) => access === 'api'
    host.hook('onRequest', (ctx) => void requests.push(ctx), { scope: 'all', order: 'early', routes })
  })
  const fleet = await openWasmFleet(
    { ...GENEROUS, fetch: { origins: [origin], timeoutMs: 25_000 } },
    { own: [preempts] },
  )
  const allowed = { allowed_hosts: [origin] }
  await fleet.attach('requester', 'OnRequest', fetching({ url: `${origin}/request` }), allowed)
  await fleet.attach('teller', 'OnError', fetching({ url: `${origin}/error` }), allowed)
  const reply = fleet.chat()
  await expect.poll(() => received.length).toBe(1)
  requests[0].fail(new Error('preempted'))
  // Long before the timeout of the fetch.
  await expect.poll(() => isAborted).toBe(true)
  expect((await shown(await reply)).fetched).toMatchObject({ error: null, status: 200 })
  expect(received.map(({ url }) => url)).toEqual(['/request', '/error'])
})

test('a module that fetches repeatedly fails, and the other modules run', async () => {
  const { origin, received } = await openService(respondWith('more'))
  const fleet = await openWasmFleet({
    ...GENEROUS,
    fetch: { timeoutMs: 20_000, origins: [origin], maxPerCall: 3 },
  })
  const again = fetching({ url: origin }, { after: 'again' })
  const uuid = await fleet.attach('requester', 'OnRequest', again, { allowed_hosts: [origin] })
  await fleet.attach('header', 'OnRequest', {
    head: JSON.stringify({ action: 'modify', headers_set: [['x-seen', '1']] }),
  })
  expect((await fleet.chat()).status).toBe(200)
  expect([received.length, fleet.workers[0].requests[0].header('x-seen')]).toEqual([3, '1'])
  expect((await fleet.list()).metrics).toMatchObject({ failed_executions: 1, total_executions: 5 })
  await fleet.remove(uuid)
  await fleet.attach('closed', 'OnRequest', again, { allowed_hosts: [origin], on_failure: 'closed' })
  expect((await fleet.chat()).status).toBe(500)
})

test('changes before a fetch are kept, and later modules see all of them', async () => {
  const { origin } = await openService(respondWith('fine'))
  const fleet = await openWasmFleet({ ...GENEROUS, fetch: { timeoutMs: 20_000, origins: [origin] } })
  const sets = (name: string) => ({
    head: JSON.stringify({ action: 'modify', headers_add: [['x-order', name]], replaces_body: true }),
    body: JSON.stringify({ model: 'test-model', messages: [], note: name }),
  })
  await fleet.attach('before', 'OnRequest', sets('first'))
  const config = fetching({ url: origin }, { after: 'continue' })
  await fleet.attach('requester', 'OnRequest', config, { allowed_hosts: [origin] })
  await fleet.attach('after', 'OnRequest', sets('second'), { placement: 'inline' })
  expect((await fleet.chat()).status).toBe(200)
  const [{ rawHeaders, body }] = fleet.workers[0].requests
  const orders = rawHeaders.filter(([name]) => name.toLowerCase() === 'x-order').map(([, value]) => value)
  expect([orders.join(', '), JSON.parse(String(body)).note]).toEqual(['first, second', 'second'])
})

test('a module that fails on each result is suspended, even if the fetches succeed', async () => {
  const { origin, received } = await openService(respondWith('fine'))
  const fleet = await openWasmFleet({ ...GENEROUS, fetch: { timeoutMs: 20_000, origins: [origin] } })
  const config = fetching({ url: origin }, { after: 'trap' })
  await fleet.attach('requester', 'OnRequest', config, { allowed_hosts: [origin] })
  for (let i = 0; i < 8; i++) expect((await fleet.chat()).status).toBe(200)
  expect(received).toHaveLength(5)
})

test.each(['OnResponse', 'OnError'] as const)('a response waits for a fetch too (%s)', async (point) => {
  const { origin } = await openService(respondWith('fine'))
  const fleet = await openWasmFleet(
    { ...GENEROUS, fetch: { timeoutMs: 20_000, origins: [origin] } },
    point === 'OnError' ? { workers: [{ models: ['other'] }] } : {},
  )
  await fleet.attach('requester', point, fetching({ url: origin }), { allowed_hosts: [origin] })
  const reply = await fleet.chat()
  const { fetched, text } = await shown(reply)
  expect([reply.status, fetched.status, text.endsWith('fine')]).toEqual([200, 200, true])
})

/** A fleet with a service, and what a module needs to fetch from it. */
async function openFetching(answer: Parameters<typeof openService>[0], limits: Record<string, unknown> = {}) {
  const service = await openService(answer)
  const { origin } = service
  const fleet = await openWasmFleet({
    ...GENEROUS,
    fetch: { timeoutMs: 20_000, origins: [origin], ...limits },
  })
  const posts = (more: Record<string, string> = {}) =>
    fetching({ url: origin, method: 'POST', headers: [['x-key', 'v']], state: 'kept' }, more)
  return { ...service, fleet, posts, more: { allowed_hosts: [origin] } }
}

async function streamOf(fleet: WasmFleet, content?: string) {
  const messages = [{ role: 'user', content: 'hi' }]
  const stream = openSse(`${fleet.gateway.url}/v1/chat/completions`, {
    body: { model: 'test-model', stream: true, messages, ...(content !== undefined && { content }) },
  })
  await stream.done
  return stream
}

/** Text of the chat answer, streamed or not. */
async function saidBy(fleet: WasmFleet, isStream: boolean): Promise<string> {
  if (!isStream) {
    const reply = await fleet.chat({ model: 'test-model', messages: [{ role: 'user', content: 'hi' }] })
    const { choices } = (await reply.json()) as { choices: { message: { content: string } }[] }
    return choices[0].message.content
  }
  const { events, isWhole } = await streamOf(fleet)
  expect(isWhole).toBe(true)
  const chunks = events.filter(({ data }) => data.startsWith('{')).map(({ data }) => JSON.parse(data))
  expect(chunks.filter(({ error }) => error !== undefined)).toEqual([])
  return chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
}

const dataOf = ({ events }: { readonly events: readonly { readonly data: string }[] }) =>
  events.map(({ data }) => data)

describe.each(['pool', 'inline'] as const)('in streams and texts (%s)', (placement) => {
  test('an event waits for the fetch, those behind it keep their order, and later modules see the result', async () => {
    const { fleet, posts, more, received } = await openFetching((_, response) => void response.end('!'))
    fleet.workers[0].script(CHAT, sseAnswer(['a', 'b', 'c', 'd', '[DONE]']))
    await fleet.attach('double', 'OnStreamEvent', { do: 'double', when: 'c' }, { placement })
    await fleet.attach('requester', 'OnStreamEvent', posts({ end: 'too' }), { placement, ...more })
    await fleet.attach('upper', 'OnStreamEvent', { do: 'upper', when: 'b' }, { placement })
    expect(dataOf(await streamOf(fleet))).toEqual(['a!', 'B!', 'c!', 'c!', 'd!', '!', '[DONE]'])
    expect(received.map(({ body }) => body)).toEqual(['a', 'b', 'c', 'c', 'd', ''])
    const metrics = await fleet.metrics()
    const calls = (outcome: string) =>
      [...metrics].find(
        ([name]) => /wasm.*executions_total.*requester/.test(name) && name.includes(`"${outcome}"`),
      )?.[1]
    expect([calls('fetch'), calls('modify')]).toEqual([6, 6])
  })

  test('a text waits for the fetch, streamed or not, between modules that hold text back', async () => {
    const { fleet, posts, more, received } = await openFetching((_, response) => void response.end('!'))
    fleet.workers[0].script(CHAT, chatAnswer('one two three'))
    await fleet.attach('holds', 'OnText', { do: 'hold' }, { placement })
    await fleet.attach('requester', 'OnText', posts({ end: 'too' }), { placement, ...more })
    await fleet.attach('holds-too', 'OnText', { do: 'hold' }, { placement })
    for (const isStream of [true, false]) expect(await saidBy(fleet, isStream)).toBe('one two three!')
    expect(received.map(({ body }) => body)).toEqual(['one two three', 'one two three'])
  })

  test('every piece of a text may fetch; the pieces stay in order', async () => {
    let delayMs = 40
    const { fleet, posts, more } = await openFetching((_, response) => {
      // Each response is faster than the one before.
      delayMs = Math.max(0, delayMs - 10)
      setTimeout(() => response.end('.'), delayMs)
    })
    fleet.workers[0].script(CHAT, chatAnswer('abcdefghijklmnopqrstuvwxyz'))
    await fleet.attach('requester', 'OnText', posts(), { placement, ...more })
    const text = await saidBy(fleet, true)
    expect(text.replaceAll('.', '')).toBe('abcdefghijklmnopqrstuvwxyz')
    expect(text).toMatch(/^[a-z]+\./)
  })

  test.each([
    ['an unreachable server', 'unreachable'],
    ['an expired deadline', 'timeout'],
  ] as const)('%s is passed to the module, and the answer is complete', async (_, error) => {
    const { fleet, posts, more, server } = await openFetching(() => {}, { timeoutMs: 200 })
    if (error === 'unreachable') await new Promise((resolve) => server.close(resolve))
    fleet.workers[0].script(CHAT, chatAnswer('it'))
    await fleet.attach('requester', 'OnText', posts({ when: 'it' }), { placement, ...more })
    for (const isStream of [true, false]) expect(await saidBy(fleet, isStream)).toBe('it')
    const metrics = await fleet.metrics()
    expect(metrics.get(`weir_wasm_fetches_total{module="requester",outcome="${error}"}`)).toBe(2)
  })

  test.each(['again', 'trap'])(
    'a module that fails behind its fetch (%s) passes or ends the answer',
    async (after) => {
      const { fleet, posts, more, received } = await openFetching(respondWith('!'), { maxPerCall: 3 })
      fleet.workers[0].script(CHAT, chatAnswer('it'))
      const open = await fleet.attach('open', 'OnText', posts({ after, when: 'it' }), { placement, ...more })
      expect(await saidBy(fleet, true)).toBe('it')
      expect(received).toHaveLength(after === 'again' ? 3 : 1)
      await fleet.remove(open)
      const closed = { placement, ...more, on_failure: 'closed' } as const
      const text = await fleet.attach('closed', 'OnText', posts({ after, when: 'it' }), closed)
      expect((await streamOf(fleet)).text()).toContain('wasm_module_failed')
      await fleet.remove(text)
      await fleet.attach('events', 'OnStreamEvent', posts({ after, when: 'it' }), closed)
      expect((await streamOf(fleet)).text()).toContain('wasm_module_failed')
    },
  )
})

test.each(['OnText', 'OnStreamEvent'] as const)(
  'a client that leaves ends the fetch of its stream (%s)',
  async (point) => {
    const { fleet, posts, more, received, server } = await openFetching(() => {})
    fleet.workers[0].script(CHAT, chatAnswer('all of it'))
    await fleet.attach('requester', point, posts({ when: 'all' }), more)
    const stream = openSse(`${fleet.gateway.url}/v1/chat/completions`, {
      body: { model: 'test-model', stream: true, messages: [{ role: 'user', content: 'hi' }] },
    })
    await expect.poll(() => received.length).toBe(1)
    stream.close()
    const connections = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))
    await expect.poll(connections).toBe(0)
  },
)

test('cases of modules have the results of fetches for events and texts', async () => {
  const head = JSON.stringify({ action: 'fetch', url: 'https://a.example', state: 'kept' })
  const fetched = [{ body: '!' }, { error: 'timeout' as const }]
  const fetches = [{ url: 'https://a.example', body: 'a' }, { body: 'b' }]
  const moduleCase = {
    title: 'fetches',
    config: { do: 'fetch', head },
    steps: [
      {
        on: 'OnStreamEvent' as const,
        events: [{ data: 'a' }, { data: 'b' }],
        fetched,
        expect: { events: [{ data: 'a!' }, { data: 'b' }], fetches },
      },
      {
        on: 'OnText' as const,
        text: { pieces: ['a', 'b'] },
        fetched,
        expect: { pieces: ['a!', 'b', ''], fetches },
      },
      {
        on: 'OnText' as const,
        text: { pieces: ['a'] },
        expect: { fails: '`fetched` of the step has no further entry' },
      },
    ],
  }
  const { steps } = await runCase(moduleCase, { bytes: await guestBytes() })
  expect(steps.flatMap(({ differences }) => differences)).toEqual([])
})
