/** The port for clients that the server library does not serve. Raw bytes on real sockets. */

import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiErrorFormat, definePlugin, type RequestContext, type SseWriter, Type } from '#kernel'
import { freePort } from '../support/free-port.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type RawReply, sendRaw } from '../support/raw-socket.ts'

const streams: { ctx: RequestContext; sse: SseWriter }[] = []
const probe = definePlugin({
  manifest: { name: 'probe', version: '0.0.0', description: 'shows requests', config: Type.Object({}) },
  register(host) {
    const route = {
      access: 'public' as const,
      errors: apiErrorFormat,
      docs: { summary: 'shown', tag: 'test', responses: {} },
    }
    const headers = ['host', 'x-forwarded-for', 'x-shown', 'x-hop', 'te']
    host.route({
      ...route,
      method: 'GET',
      path: '/shown',
      headers,
      handler: (ctx) =>
        ctx.json(200, Object.fromEntries(headers.map((name) => [name, ctx.header(name) ?? null]))),
    })
    host.route({
      ...route,
      method: 'POST',
      path: '/echo',
      handler: (ctx) => ctx.text(200, ctx.bodyBytes.toString()),
    })
    host.route({
      ...route,
      method: 'GET',
      path: '/stream',
      handler: (ctx) => {
        const sse = ctx.sse()
        sse.write('data: 1\n\n')
        streams.push({ ctx, sse })
      },
    })
  },
})

let gateway: TestGateway
let port: number
beforeAll(async () => {
  const api = await freePort()
  port = await freePort()
  gateway = await startGateway({
    kernel: { port: api },
    own: [probe],
    plugins: { auth: {}, workers: {}, 'legacy-http': { port, headMs: 4_000 } },
  })
})
afterAll(() => gateway.stop())

const WAIT = { waitMs: 30_000 }
const jsonOf = ({ bytes }: RawReply) => JSON.parse(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4).toString())

test.each([
  ['with Host', 'GET /shown HTTP/1.0\r\nHost: a\r\n\r\n', 'a'],
  ['without Host', 'GET /shown HTTP/1.0\r\n\r\n', 'unnamed.invalid'],
  ['absolute form', 'GET http://b:1/shown HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 'b:1'],
])('B: HTTP/1.0 and absolute targets are served, %s', async (_name, bytes, host) => {
  const reply = await sendRaw(port, bytes, WAIT)
  expect([reply.statuses, reply.closed]).toEqual([[200], true])
  expect(jsonOf(reply)).toMatchObject({ host, 'x-forwarded-for': '127.0.0.1' })
  expect(reply.text).not.toMatch(/^(transfer-encoding|server):/im)
})

test('B: OPTIONS * is answered', async () => {
  const reply = await sendRaw(port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', WAIT)
  expect(reply.statuses).toEqual([204])
  expect(reply.text).toMatch(/^allow: GET, HEAD/im)
})

test('headers of one connection stay there, and the client is added to x-forwarded-for', async () => {
  const reply = await sendRaw(
    port,
    'GET /shown HTTP/1.1\r\nHost: a\r\nConnection: close, x-hop, host\r\nX-Hop: 1\r\nTE: trailers\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n',
    WAIT,
  )
  expect(jsonOf(reply)).toEqual({
    host: 'a',
    'x-forwarded-for': '10.0.0.1, 127.0.0.1',
    'x-shown': null,
    'x-hop': null,
    te: null,
  })
})

const head = (value: string) => Buffer.from(`GET /shown HTTP/1.0\r\nHost: a\r\nX-Shown: ${value}\r\n\r\n`)
test('header values that would be cut are refused, those with such bytes inside pass whole', async () => {
  for (const value of ['üa', 'aü']) {
    const reply = await sendRaw(port, head(value), WAIT)
    expect([reply.statuses, jsonOf(reply).error.code]).toEqual([[400], 'header_not_ascii'])
    expect(jsonOf(reply).error.message).toContain("'x-shown'")
  }
  expect(jsonOf(await sendRaw(port, head('aüb'), WAIT))['x-shown']).toBe('aüb')
})

const post = (lines: string, body: string) => `POST /echo HTTP/1.1\r\nHost: a\r\n${lines}\r\n${body}`
test.each([
  ['both framings', post('Content-Length: 2\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'), 400],
  ['a bad chunk', post('Transfer-Encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n'), 400],
  ['two lengths', post('Content-Length: 2\r\nContent-Length: 3\r\n', '{}x'), 400],
  ['a coding before chunked', post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'), 400],
  ['HTTP/1.1 without Host', 'GET /shown HTTP/1.1\r\n\r\n', 400],
  ['no HTTP at all', 'hello\r\n\r\n', 400],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
  ['a large head', `GET /shown HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`, 431],
  ['many headers', `GET /shown HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(95)}\r\n`, 431],
  ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n', 405],
  ['a head that never ends', 'GET /shown HTTP/1.1\r\nHost:', 408],
])('B: %s is answered in the envelope and the connection is closed', async (_name, bytes, status) => {
  const reply = await sendRaw(port, bytes, WAIT)
  expect([reply.statuses, reply.closed]).toEqual([[status], true])
  expect(reply.text).toContain(`x-weir-error-code: ${jsonOf(reply).error.code}`)
})

test('bodies pass, by length, by chunks and after 100-continue', async () => {
  const close = 'Connection: close\r\n'
  const bodies = [
    post(`${close}Content-Length: 2\r\n`, 'hi'),
    post(`${close}Transfer-Encoding: chunked\r\n`, '2\r\nhi\r\n0\r\n\r\n'),
    post(`${close}Expect: 100-continue\r\nContent-Length: 2\r\n`, 'hi'),
  ]
  for (const bytes of bodies) {
    const reply = await sendRaw(port, bytes, WAIT)
    expect(reply.statuses.at(-1)).toBe(200)
    expect(reply.text.endsWith('hi') || reply.text.includes('\r\nhi\r\n')).toBe(true)
  }
})

test('a stream comes piece by piece without chunks for HTTP/1.0, and ends at once when its client leaves', async () => {
  const seen = await sendRaw(port, 'GET /stream HTTP/1.0\r\n\r\n', {
    ...WAIT,
    until: (text) => text.endsWith('data: 1\n\n'),
  })
  expect(seen.text.endsWith('\r\n\r\ndata: 1\n\n')).toBe(true)
  await expect.poll(() => streams.at(-1)?.ctx.isAborted, { timeout: 10_000 }).toBe(true)
})

test('an answer that breaks is broken for an HTTP/1.1 client too', async () => {
  const bytes = 'GET /stream HTTP/1.1\r\nHost: a\r\n\r\n'
  const count = streams.length
  const reply = sendRaw(port, bytes, WAIT)
  await expect.poll(() => streams.length, { timeout: 10_000 }).toBe(count + 1)
  streams.at(-1)?.ctx.destroy()
  const { closed, text } = await reply
  expect(closed).toBe(true)
  expect(text).not.toContain('0\r\n\r\n')
})

test('§5 a foreign page is foreign here too', async () => {
  const body = '{}'
  const reply = await sendRaw(
    port,
    `POST /workers HTTP/1.0\r\nOrigin: http://evil.example\r\nContent-Length: 2\r\n\r\n${body}`,
    WAIT,
  )
  expect(jsonOf(reply).error.code).toBe('foreign_page')
})
