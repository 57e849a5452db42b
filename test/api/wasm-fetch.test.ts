/** Outgoing HTTP of modules over real sockets: permitted origins, results, and no blocking of other requests. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { RequestContext } from '#kernel'
import { plugin } from '../support/hooked-gateway.ts'
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
    poolThreads: 1,
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
  await expect.poll(() => received.length, { timeout: 20_000 }).toBe(8)
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
  await expect.poll(() => received.length, { timeout: 20_000 }).toBe(1)
  leave.abort()
  const connections = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))
  await expect.poll(connections, { timeout: 20_000 }).toBe(0)
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
  await expect.poll(() => received.length, { timeout: 20_000 }).toBe(1)
  requests[0].fail(new Error('preempted'))
  // Long before the timeout of the fetch.
  await expect.poll(() => isAborted, { timeout: 15_000 }).toBe(true)
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
