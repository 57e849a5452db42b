/** Connections of the second port over their lives: kept, ahead of their turn, upgraded, over TLS, and at the end. */

import { request as secureRequest } from 'node:https'
import { connect, createServer } from 'node:net'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { messageSocket } from '#contracts'
import { apiErrorFormat, definePlugin, type RequestContext, type SseWriter, Type } from '#kernel'
import { TestAuthority } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type RawReply, sendRaw } from '../support/raw-socket.ts'

const WAIT = { waitMs: 15_000 }
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const streams: { readonly ctx: RequestContext; readonly sse: SseWriter }[] = []
/** Queries of the requests to /noted. */
const noted: (string | null)[] = []
const probe = definePlugin({
  manifest: { name: 'probe', version: '0.0.0', description: 'answers', config: Type.Object({}) },
  register(host) {
    const route = {
      access: 'public' as const,
      errors: apiErrorFormat,
      docs: { summary: 'of a test', tag: 'test', responses: {} },
    }
    host.route({
      ...route,
      method: 'POST',
      path: '/echo',
      headers: ['x-shown'],
      handler: (ctx) => ctx.text(200, `${ctx.query} ${ctx.header('x-shown') ?? 'none'} ${ctx.bodyBytes}`),
    })
    host.route({
      ...route,
      method: 'GET',
      path: '/noted',
      handler: (ctx) => {
        noted.push(ctx.query)
        ctx.text(200, 'noted')
      },
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
    host.socket(
      messageSocket({
        path: '/talk',
        access: 'public',
        errors: apiErrorFormat,
        onMessage: (ctx) => ctx.json(200, { said: ctx.bodyBytes.toString() }),
      }),
    )
  },
})

interface Ports {
  readonly gateway: TestGateway
  /** Of the API. */
  readonly api: number
  readonly port: number
}

async function open(settings: object = {}, kernel: Record<string, unknown> = {}): Promise<Ports> {
  const [api, port] = [await freePort(), await freePort()]
  const gateway = await startGateway({
    kernel: { port: api, ...kernel },
    own: [probe],
    plugins: { 'legacy-http': { port, ...settings } },
  })
  closers.push(() => gateway.stop())
  return { gateway, api, port }
}

const echo = (version: string, target: string, lines: string, body: string) =>
  `POST ${target} HTTP/${version}\r\n${lines}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const count = (text: string, word: string) => text.split(word).length - 1

test('HTTP/1.0 connections that ask to be kept are kept', async () => {
  const { port } = await open()
  const kept = 'Connection: keep-alive\r\n'
  const reply = await sendRaw(
    port,
    [echo('1.0', '/echo?a', kept, 'one'), echo('1.0', '/echo?b', '', 'two')],
    WAIT,
  )
  expect([reply.statuses, reply.closed]).toEqual([[200, 200], true])
  expect(reply.text).toMatch(/a none one[\s\S]*b none two$/)
  expect(reply.text).toMatch(/^connection: keep-alive/im)
})

test('requests that come ahead of their turn are answered in their order, also behind a stream', async () => {
  const { port } = await open()
  const before = streams.length
  const ahead = `GET /stream HTTP/1.1\r\nHost: a\r\n\r\n${echo('1.1', '/echo?1', 'Host: a\r\n', 'x')}`
  const reply = sendRaw(port, ahead + echo('1.1', '/echo?2', 'Host: a\r\nConnection: close\r\n', 'y'), WAIT)
  await expect.poll(() => streams.length, { timeout: 15_000 }).toBe(before + 1)
  streams.at(-1)?.sse.end('data: 2\n\n')
  const { text, statuses, closed } = await reply
  expect([statuses, closed]).toEqual([[200, 200, 200], true])
  expect(text).toMatch(/data: 1[\s\S]*data: 2[\s\S]*1 none x[\s\S]*2 none y$/)
})

test('a WebSocket passes both ways, and its end too', async () => {
  const { port } = await open()
  const ws = new WebSocket(`ws://127.0.0.1:${port}/talk`)
  closers.push(() => ws.terminate())
  await new Promise((resolve, reject) => ws.once('open', resolve).once('error', reject))
  for (const said of ['one', 'x'.repeat(100_000)]) {
    const heard = new Promise((resolve) => ws.once('message', (data) => resolve(JSON.parse(String(data)))))
    ws.send(said)
    expect(await heard).toEqual({ said })
  }
  const closed = new Promise((resolve) => ws.once('close', resolve))
  ws.close(1000)
  expect(await closed).toBe(1000)
})

test('a WebSocket that the gateway refuses is refused here in the same words', async () => {
  const { port } = await open()
  const ws = new WebSocket(`ws://127.0.0.1:${port}/nowhere`)
  closers.push(() => ws.terminate())
  const status = await new Promise((resolve) => {
    ws.once('unexpected-response', (_request, response) => resolve(response.statusCode))
    ws.once('error', () => {})
  })
  expect(status).toBe(404)
})

test('an offer of another protocol is passed over', async () => {
  const { port } = await open()
  const offer =
    'Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
  const { statuses, text, closed } = await sendRaw(port, echo('1.1', '/echo?up', offer, 'body'), WAIT)
  expect([statuses, closed]).toEqual([[200], true])
  expect(text.endsWith('up none body')).toBe(true)
})

const OFFER = 'Host: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n'

test('what comes behind a request with such an offer reaches nobody, in one packet or later', async () => {
  const { port } = await open()
  noted.length = 0
  const behind = 'GET /noted?behind HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n'
  for (const ahead of [`GET /noted?asked HTTP/1.1\r\n${OFFER}\r\n`, echo('1.1', '/echo?up', OFFER, 'body')]) {
    for (const parts of [[ahead + behind], [ahead, behind], [ahead.slice(0, -1), ahead.slice(-1) + behind]]) {
      const { statuses, closed } = await sendRaw(port, parts, WAIT)
      expect([statuses, closed]).toEqual([[200], true])
    }
  }
  expect(noted).toEqual(['asked', 'asked', 'asked'])
})

test('a chunked body behind such an offer is refused', async () => {
  const { port } = await open()
  const chunked = `POST /echo HTTP/1.1\r\n${OFFER}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`
  const { statuses, text, closed } = await sendRaw(port, chunked, WAIT)
  expect([statuses, closed]).toEqual([[400], true])
  expect(text).toMatch(/^x-weir-error-code: bad_framing/im)
})

test('a body that comes bit by bit behind such an offer arrives whole, however large', async () => {
  const { port } = await open()
  const body = 'x'.repeat(1_000_000)
  const bytes = echo('1.1', '/echo?up', OFFER, body)
  const parts = [bytes.slice(0, 200), bytes.slice(200, 500_000), bytes.slice(500_000)]
  const { statuses, text, closed } = await sendRaw(port, parts, WAIT)
  expect([statuses, closed]).toEqual([[200], true])
  expect(text.endsWith(`up none ${body}`)).toBe(true)
})

test('an answer to such a request is whole at the end of the gateway, and its connection is not kept', async () => {
  const { gateway, port } = await open({}, { shutdown: { graceMs: 15_000 } })
  const before = streams.length
  const reply = sendRaw(port, `GET /stream HTTP/1.1\r\n${OFFER}\r\n`, WAIT)
  await expect.poll(() => streams.length, { timeout: 15_000 }).toBe(before + 1)
  const stopped = gateway.stop()
  streams.at(-1)?.sse.end('data: 2\n\n')
  expect(await reply).toMatchObject({ statuses: [200], closed: true })
  expect((await reply).text.endsWith('data: 1\n\ndata: 2\n\n')).toBe(true)
  await stopped
})

test('what comes behind a WebSocket that is refused reaches nobody', async () => {
  const { port } = await open()
  noted.length = 0
  const offer = 'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
  const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
  const behind = 'GET /noted?behind HTTP/1.1\r\nHost: a\r\n\r\n'
  const reply = await sendRaw(port, `GET /nowhere HTTP/1.1\r\n${offer}${key}\r\n${behind}`, WAIT)
  expect([reply.statuses, reply.closed]).toEqual([[404], true])
  expect(noted).toEqual([])
})

test('an offer that comes ahead of its turn is answered in its order', async () => {
  const { port } = await open()
  const before = streams.length
  const ahead = 'GET /stream HTTP/1.1\r\nHost: a\r\n\r\n'
  const reply = sendRaw(port, ahead + echo('1.1', '/echo?up', OFFER, 'body'), WAIT)
  await expect.poll(() => streams.length, { timeout: 15_000 }).toBe(before + 1)
  streams.at(-1)?.sse.end('data: 2\n\n')
  const { text, statuses, closed } = await reply
  expect([statuses, closed]).toEqual([[200, 200], true])
  expect(text).toMatch(/data: 1[\s\S]*data: 2[\s\S]*up none body$/)
})

test('what breaks off is reset for a client of HTTP/1.0, whose answer has no other frame', async () => {
  const { port } = await open()
  const before = streams.length
  const ended = new Promise<string>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /stream HTTP/1.0\r\n\r\n'))
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
    socket.on('end', () => resolve('an end in order'))
    socket.resume()
  })
  await expect.poll(() => streams.length, { timeout: 15_000 }).toBe(before + 1)
  streams.at(-1)?.ctx.destroy()
  expect(await ended).toBe('ECONNRESET')
})

test('a body that is too large is refused before it is asked for', async () => {
  const { port } = await open({}, { http: { maxBodyBytes: 1_024 } })
  const head = 'POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2000\r\n\r\n'
  const { statuses, text, closed } = await sendRaw(port, head, WAIT)
  expect([statuses, closed]).toEqual([[413], true])
  expect(text).toMatch(/^x-weir-error-code: payload_too_large/im)
  expect(text).not.toMatch(/^(server|uwebsockets):/im)
})

test('a connection on which nothing is asked is closed after idleMs, and one beyond the limit at once', async () => {
  const { port } = await open({ idleMs: 200, maxConnections: 1 })
  const first = sendRaw(port, echo('1.1', '/echo', 'Host: a\r\n', 'x'), WAIT)
  expect(await first).toMatchObject({ statuses: [200], closed: true })
  const held = connect(port, '127.0.0.1')
  closers.push(() => held.destroy())
  await new Promise((resolve) => held.once('connect', resolve))
  expect(await sendRaw(port, 'GET /stream HTTP/1.0\r\n\r\n', WAIT)).toMatchObject({
    statuses: [],
    closed: true,
  })
})

test('a port that is taken ends the start with what to change', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  closers.push(() => taken.close())
  const { port } = taken.address() as { port: number }
  const api = await freePort()
  const start = startGateway({ kernel: { port: api }, plugins: { 'legacy-http': { port } } })
  await expect(start).rejects.toThrow(/the port is taken by another program; choose .*legacy-http\.port/)
})

test('at the end of the gateway what runs is answered whole', async () => {
  const { gateway, port } = await open({}, { shutdown: { graceMs: 15_000 } })
  const before = streams.length
  const reply = sendRaw(port, 'GET /stream HTTP/1.1\r\nHost: a\r\n\r\n', WAIT)
  await expect.poll(() => streams.length, { timeout: 15_000 }).toBe(before + 1)
  const stopped = gateway.stop()
  streams.at(-1)?.sse.end('data: 2\n\n')
  const { text, closed } = await reply
  expect(closed).toBe(true)
  expect(text).toMatch(/data: 2\n\n\r\n0\r\n\r\n$/)
  await stopped
})

test('where the API speaks TLS, so does this port', async () => {
  const authority = new TestAuthority()
  const { certFile, keyFile } = authority.issue('server')
  const { port } = await open({}, { tls: { certFile, keyFile } })
  const text = await new Promise<string>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/echo?tls', method: 'POST', ca: authority.ca }
    const request = secureRequest(options, async (response) => {
      let all = ''
      for await (const part of response) all += part
      resolve(all)
    })
    request.on('error', reject)
    request.end('body')
  })
  expect(text).toBe('tls none body')
})

test('any request, cut anywhere, is answered as in one piece, and as the API answers the same', async () => {
  const { port, api } = await open()
  const request = fc.record({
    form: fc.constantFrom('1.0', 'absolute', 'chunked'),
    query: fc.stringMatching(/^[a-z0-9=&]{0,20}$/),
    shown: fc.stringMatching(/^[!-~]{1,20}$/),
    body: fc.string({ unit: 'binary', maxLength: 200 }),
    cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(request, async ({ form, query, shown, body, cuts }) => {
      const lines = `X-Shown: ${shown}\r\nConnection: close\r\n`
      const host = 'Host: a\r\n'
      const target = `/echo?${query}`
      const size = Buffer.byteLength(body)
      const bytes = Buffer.from(
        form === '1.0'
          ? echo('1.0', target, lines, body)
          : form === 'absolute'
            ? echo('1.1', `http://a${target}`, host + lines, body)
            : `POST ${target} HTTP/1.1\r\n${host}${lines}Transfer-Encoding: chunked\r\n\r\n${
                size === 0 ? '' : `${size.toString(16)}\r\n${body}\r\n`
              }0\r\n\r\n`,
      )
      const places = [...new Set(cuts.map((cut) => Math.floor(cut * bytes.length)))].sort((a, b) => a - b)
      const parts = [0, ...places].map((from, index) => bytes.subarray(from, places[index])).filter(notEmpty)
      const whole = await sendRaw(port, bytes, WAIT)
      const cut = await sendRaw(port, parts, { ...WAIT, betweenPartsMs: 1 })
      const twin = await sendRaw(api, echo('1.1', target, host + lines, body), WAIT)
      expect(told(cut)).toEqual(told(whole))
      expect(told(whole)).toEqual(told(twin))
      expect(whole.statuses).toEqual([200])
    }),
    { numRuns: 60 },
  )
})

const notEmpty = (part: Buffer) => part.length > 0

/** What an answer says, without what differs from one to the next. */
function told({ text, statuses }: RawReply): unknown {
  const end = text.indexOf('\r\n\r\n')
  const type = /^content-type: (.*)$/im.exec(text.slice(0, end))?.[1]?.trim()
  expect(count(text, 'HTTP/1.1 ')).toBe(1)
  return { statuses, type, body: text.slice(end + 4) }
}
