/** The per-thread budget for request bodies, over real sockets. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { Auth, apiErrorFormat, type Host, type Identity } from '#kernel'
import { messageSocket } from '#shared'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { plugin } from '../support/hooked-gateway.ts'

const BODY_BYTES = 100_000
const BODY = 'x'.repeat(BODY_BYTES)
/** Two bodies fit, one per tenant. */
const http = { maxBodyBytes: BODY_BYTES, maxHeldBodyBytes: 250_000, maxHeldBodyBytesPerTenant: 150_000 }
const auth = { tenantKeys: ['a:key-a', 'b:key-b', 'c:key-c'] }

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** `POST /length` responds with the length of its body. */
function register(host: Host): void {
  const docs = { summary: 'of a test', tag: 'test', responses: {} }
  host.route({
    method: 'POST',
    path: '/length',
    access: 'api',
    errors: apiErrorFormat,
    docs,
    handler: (ctx) => ctx.text(200, String(ctx.bodyBytes.length)),
  })
}

async function open(own = [plugin('length', register)], plugins: object = { auth }): Promise<TestGateway> {
  const gateway = await startGateway({ own, plugins: { ...plugins }, kernel: { http } })
  closers.push(() => gateway.stop())
  return gateway
}

const HOW = {
  announced: `Content-Length: ${BODY_BYTES}\r\n\r\nx`,
  chunked: `Transfer-Encoding: chunked\r\n\r\n${(BODY_BYTES - 1).toString(16)}\r\n${BODY.slice(1)}\r\n`,
}

/** Sends a request whose body does not end. */
function unfinished(gateway: TestGateway, key: string, how: keyof typeof HOW): Socket {
  const socket = connect({ port: gateway.port, host: '127.0.0.1' })
  closers.push(() => socket.destroy())
  socket.on('error', () => {})
  socket.write(`POST /length HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n${HOW[how]}`)
  return socket
}

function send(gateway: TestGateway, key: string): Promise<Response> {
  const headers = { authorization: `Bearer ${key}` }
  return fetch(`${gateway.url}/length`, { method: 'POST', headers, body: BODY })
}

const statusOf = async (gateway: TestGateway, key: string) => (await send(gateway, key)).status

test.each(['announced', 'chunked'] as const)(
  'unfinished bodies (%s) count against the budget of their tenant and of the thread',
  async (how) => {
    const gateway = await open()
    expect(await statusOf(gateway, 'key-a')).toBe(200)
    const ofA = unfinished(gateway, 'key-a', how)
    await expect.poll(() => statusOf(gateway, 'key-a')).toBe(429)
    const rejected = await send(gateway, 'key-a')
    expect(rejected.headers.get('retry-after')).toBe('1')
    expect(await rejected.json()).toMatchObject({ error: { code: 'too_many_body_bytes' } })
    expect(await statusOf(gateway, 'key-b')).toBe(200)
    const ofB = unfinished(gateway, 'key-b', how)
    await expect.poll(() => statusOf(gateway, 'key-c')).toBe(503)
    expect(await (await send(gateway, 'key-c')).json()).toMatchObject({
      error: { code: 'body_memory_exhausted' },
    })
    ofA.destroy()
    ofB.destroy()
    await expect.poll(() => statusOf(gateway, 'key-a')).toBe(200)
    expect(await statusOf(gateway, 'key-c')).toBe(200)
  },
)

test('requests with a wrong key are rejected before the body arrives, and count against no budget', async () => {
  const gateway = await open()
  for (let n = 0; n < 5; n++) {
    const [response] = await once(unfinished(gateway, 'wrong', 'announced'), 'data')
    expect(String(response)).toMatch(/^HTTP\/1.1 401 /)
  }
  expect(await statusOf(gateway, 'key-a')).toBe(200)
})

test('clients without a tenant count by address; the budget is released after each request', async () => {
  const gateway = await open(undefined, { auth: {} })
  for (let n = 0; n < 4; n++) expect(await statusOf(gateway, 'any')).toBe(200)
  unfinished(gateway, 'any', 'announced')
  await expect.poll(() => statusOf(gateway, 'any')).toBe(429)
})

test.each([[200], [500]])('a body is processed after an asynchronous access check: %i', async (status) => {
  const verdict = Promise.withResolvers<Identity>()
  const asked = Promise.withResolvers<void>()
  const slowAuth = plugin(
    'slow-auth',
    (host) => {
      host.provide(Auth, {
        check: () => {
          asked.resolve()
          return verdict.promise
        },
        ownerOf: () => null,
        recheck: (identity) => identity,
        isGatewayKey: () => false,
      })
      register(host)
    },
    { provides: [Auth] },
  )
  const gateway = await open([slowAuth], { auth: false })
  const response = send(gateway, 'any')
  await asked.promise
  if (status === 200) verdict.resolve({ tenant: 'team', role: null })
  else verdict.reject(new Error('unknown key'))
  expect((await response).status).toBe(status)
  if (status === 200) expect(await (await response).text()).toBe(String(BODY_BYTES))
})

test('messages of a WebSocket count until they are processed', async () => {
  const gates = [Promise.withResolvers<void>()]
  const socket = messageSocket({
    path: '/socket',
    access: 'public',
    errors: apiErrorFormat,
    onMessage: async (ctx) => {
      await gates[0].promise
      ctx.text(200, 'done')
    },
  })
  const gateway = await open([plugin('socket', (host) => host.socket(socket))], { auth: {} })
  const ws = new WebSocket(`${gateway.url.replace('http', 'ws')}/socket`)
  closers.push(() => ws.terminate())
  await once(ws, 'open')
  gates[0].resolve()
  for (let n = 0; n < 3; n++) {
    ws.send(BODY)
    await once(ws, 'message')
  }
  gates[0] = Promise.withResolvers()
  ws.send(BODY)
  ws.send(BODY)
  const [code] = await once(ws, 'close')
  expect(code).toBe(1013)
})

test('unfinished messages of WebSockets count: open sockets times their largest message stay within the budget', async () => {
  const socket = messageSocket({
    path: '/socket',
    access: 'api',
    errors: apiErrorFormat,
    limits: { maxMessageBytes: 64_000 },
    onMessage: (ctx) => ctx.text(200, String(ctx.bodyBytes.length)),
  })
  const gateway = await open([plugin('socket', (host) => host.socket(socket))])
  const connectAs = async (key: string): Promise<WebSocket> => {
    const headers = { authorization: `Bearer ${key}` }
    const ws = new WebSocket(`${gateway.url.replace('http', 'ws')}/socket`, { headers })
    closers.push(() => ws.terminate())
    const [first] = await Promise.race([
      once(ws, 'open').then(() => [200]),
      once(ws, 'unexpected-response').then(async ([, response]) => [
        `${response.statusCode} ${await text(response)}`,
      ]),
    ])
    if (first !== 200) throw new Error(String(first))
    return ws
  }
  // 72,000 bytes each: two of a tenant, three of the thread.
  const first = await connectAs('key-a')
  first.send('x'.repeat(60_000), { fin: false })
  const second = await connectAs('key-a')
  await expect(connectAs('key-a')).rejects.toThrow(/^429 .*72000 bytes.*maxHeldBodyBytesPerTenant/)
  const other = await connectAs('key-b')
  await expect(connectAs('key-c')).rejects.toThrow(/^503 .*72000 bytes.*maxHeldBodyBytes/)
  // The unfinished one still works, and its end gives its share back.
  first.send('x'.repeat(4_000), { fin: true })
  expect(String((await once(first, 'message'))[0])).toBe('64000')
  for (const ws of [first, second, other]) ws.close()
  await once(other, 'close')
  await expect.poll(() => connectAs('key-a').then(() => 200, String)).toBe(200)
})
