import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { afterAll, afterEach, expect, test } from 'vitest'
import { UpstreamFailure } from '#kernel'
import { CONTROL_POOL, callWorker as callOver, probeWorker } from './control-call.ts'
import { HttpTransport } from './http-transport.ts'

let transport = new HttpTransport(CONTROL_POOL)
const callWorker = (worker: Parameters<typeof callOver>[1], call: Parameters<typeof callOver>[2]) =>
  callOver(transport, worker, call)

const servers: Server[] = []
afterEach(() => {
  transport.close()
  transport = new HttpTransport(CONTROL_POOL)
  for (const server of servers.splice(0)) server.close()
})
afterAll(() => transport.close())

async function listen(server: Server): Promise<string> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
const startHttp = (answer: (request: IncomingMessage, response: ServerResponse) => void) =>
  listen(createServer(answer))
const GET = { method: 'GET', path: '/health', timeoutMs: 5000 }

test('any status resolves, with lower-case header names and the body as bytes', async () => {
  const url = await startHttp((_, response) => {
    response.writeHead(503, { 'X-Why': 'tired', 'Set-Cookie': ['a=1', 'b=2'] }).end('{"a":[1]}')
  })
  const reply = await callWorker({ url, apiKey: null }, GET)
  expect([reply.status, reply.header('x-why'), reply.header('x-none')]).toEqual([503, 'tired', undefined])
  expect(reply.headers.filter((_, at) => reply.headers[at - 1] === 'set-cookie')).toEqual(['a=1', 'b=2'])
  expect(reply.json()).toEqual({ a: [1] })
})

test('method, path under the prefix, headers and body arrive; the worker key replaces any other', async () => {
  const url = await startHttp(async (request, response) => {
    const { method, url: path, headers } = request
    const body = (await request.toArray()).join('')
    response.end(
      JSON.stringify({ method, path, key: headers.authorization, type: headers['content-type'], body }),
    )
  })
  const reply = await callWorker(
    { url: `${url}/prefix/`, apiKey: 'secret' },
    {
      method: 'POST',
      path: '/flush?now=1',
      headers: ['Authorization', 'Bearer client', 'content-type', 'text/plain'],
      body: 'hello',
      timeoutMs: 5000,
    },
  )
  expect(reply.json()).toEqual({
    method: 'POST',
    path: '/prefix/flush?now=1',
    key: 'Bearer secret',
    type: 'text/plain',
    body: 'hello',
  })
})

test.each([
  ['anthropic', { 'x-api-key': 'secret', 'anthropic-version': '2023-06-01' }],
  ['gemini', { 'x-goog-api-key': 'secret' }],
  ['openai', { authorization: 'Bearer secret' }],
  [null, { authorization: 'Bearer secret' }],
])(
  "the key of a worker of provider %s is sent only in that provider's header",
  async (provider, expected) => {
    const url = await startHttp(({ headers }, response) => {
      const { host: _host, connection: _connection, 'content-length': _length, ...rest } = headers
      response.end(JSON.stringify(rest))
    })
    const headers = ['Authorization', 'Bearer client', 'X-Api-Key', 'client']
    const reply = await callWorker({ url, apiKey: 'secret', provider }, { ...GET, headers })
    expect(reply.json()).toEqual(expected)
  },
)

test('redirects are returned like other responses', async () => {
  const url = await startHttp((_, response) => response.writeHead(302, { location: '/elsewhere' }).end())
  expect((await callWorker({ url, apiKey: null }, GET)).status).toBe(302)
})

test('a body over the limit fails as protocol', async () => {
  const url = await startHttp((_, response) => response.end('x'.repeat(1001)))
  expect((await callWorker({ url, apiKey: null }, { ...GET, maxBodyBytes: 1001 })).body).toHaveLength(1001)
  await expect(callWorker({ url, apiKey: null }, { ...GET, maxBodyBytes: 1000 })).rejects.toMatchObject({
    name: 'UpstreamFailure',
    kind: 'protocol',
    responseStarted: true,
  })
})

test('a call beyond its timeout fails as request_timeout, before and within the response', async () => {
  const url = await startHttp((request, response) => {
    if (request.url === '/partial') response.write('x')
  })
  const call = { method: 'GET', timeoutMs: 50 }
  await expect(callWorker({ url, apiKey: null }, { ...call, path: '/silent' })).rejects.toMatchObject({
    kind: 'request_timeout',
    responseStarted: false,
  })
  await expect(callWorker({ url, apiKey: null }, { ...call, path: '/partial' })).rejects.toMatchObject({
    kind: 'request_timeout',
    responseStarted: true,
  })
})

test('a refused connection or an invalid URL fails as connect', async () => {
  const server = createTcpServer()
  const url = await listen(server)
  server.close()
  await once(server, 'close')
  for (const worker of [url, 'nonsense'])
    await expect(callWorker({ url: worker, apiKey: null }, GET)).rejects.toMatchObject({
      name: 'UpstreamFailure',
      kind: 'connect',
    })
})

test('a broken connection fails as reset, invalid HTTP as protocol', async () => {
  const cut = await listen(createTcpServer((socket) => socket.once('data', () => socket.destroy())))
  await expect(callWorker({ url: cut, apiKey: null }, GET)).rejects.toMatchObject({ kind: 'reset' })
  const babble = await listen(
    createTcpServer((socket) => socket.once('data', () => socket.end('nonsense\r\n\r\n'))),
  )
  await expect(callWorker({ url: babble, apiKey: null }, GET)).rejects.toMatchObject({ kind: 'protocol' })
})

const worker = { url: 'http://w', apiKey: null }
const failing = (code: string) => {
  const cause = Object.assign(new Error(code), { code })
  return () => Promise.reject(new UpstreamFailure('connect', code, false, { cause }))
}

test('a probe that fails locally for lack of descriptors does not count; a refused one does', async () => {
  for (const code of ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL'])
    expect(await probeWorker(failing(code), worker, '/health', 100)).toBeUndefined()
  expect(await probeWorker(failing('ECONNREFUSED'), worker, '/health', 100)).toBe('ECONNREFUSED')
})
