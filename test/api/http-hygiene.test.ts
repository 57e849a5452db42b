/** Malformed and unusual requests at the HTTP layer, sent as raw bytes on real sockets. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adminErrorFormat, apiErrorFormat, definePlugin, Type } from '#kernel'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type RawResponse, sendRaw } from '../support/raw-socket.ts'

const echo = definePlugin({
  manifest: {
    name: 'echo',
    version: '0.0.0',
    description: 'answers with the body length',
    config: Type.Object({}),
  },
  register(host) {
    host.route({
      method: 'POST',
      path: '/echo',
      access: 'public',
      errors: apiErrorFormat,
      docs: { summary: 'echo', tag: 'test', responses: {} },
      handler: (ctx) => ctx.text(200, String(ctx.bodyBytes.length)),
    })
    host.route({
      method: 'POST',
      path: '/header',
      access: 'public',
      errors: apiErrorFormat,
      headers: ['x-shown'],
      docs: { summary: 'a header', tag: 'test', responses: {} },
      handler: (ctx) => ctx.json(200, { shown: ctx.header('x-shown') }),
    })
    host.route({
      method: 'GET',
      path: '/items/:item_id',
      access: 'public',
      errors: adminErrorFormat,
      docs: { summary: 'item', tag: 'test', responses: {} },
      handler: (ctx) => ctx.json(200, { id: ctx.param('item_id'), q: ctx.queryParam('q') }),
    })
  },
})

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({ own: [echo], plugins: {}, kernel: { http: { maxBodyBytes: 1000 } } })
})
afterAll(() => gateway.stop())

const post = (headers: string, body = '') => `POST /echo HTTP/1.1\r\nHost: a\r\n${headers}\r\n${body}`
const get = 'GET /items/1 HTTP/1.1\r\nHost: a\r\n'
const answered = (text: string) => /\r\n\r\n[\s\S]+/.test(text)

describe('framing errors get 400 and the connection is closed (RFC 9112 §6.3)', () => {
  test.each([
    ['two different Content-Length', 'Content-Length: 2\r\nContent-Length: 3\r\n', '{}x'],
    ['the same Content-Length twice', 'Content-Length: 2\r\nContent-Length: 2\r\n', '{}'],
    ['Transfer-Encoding: xchunked', 'Transfer-Encoding: xchunked\r\n', '2\r\n{}\r\n0\r\n\r\n'],
    ['Transfer-Encoding: gzip, chunked', 'Transfer-Encoding: gzip, chunked\r\n', '2\r\n{}\r\n0\r\n\r\n'],
    [
      'Transfer-Encoding twice',
      'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n',
      '2\r\n{}\r\n0\r\n\r\n',
    ],
  ])('%s', async (_name, headers, body) => {
    const reply = await sendRaw(gateway.port, post(headers, body))
    expect(reply.statuses).toEqual([400])
    expect(reply.closed).toBe(true)
    expect(reply.text).toContain('"type":"invalid_request_error"')
  })
})

describe('what the server library accepts and RFC 9112 forbids gets 400, and the connection is closed', () => {
  test.each([
    ['an empty Host (§3.2)', 'GET /items/1 HTTP/1.1\r\nHost: \r\n\r\n'],
    ['a Host with a space', 'GET /items/1 HTTP/1.1\r\nHost: a b\r\n\r\n'],
    ['a Host with a path', 'GET /items/1 HTTP/1.1\r\nHost: a/b\r\n\r\n'],
    ['a Host with a user', 'GET /items/1 HTTP/1.1\r\nHost: user@a\r\n\r\n'],
    ['a Transfer-Encoding in capitals', post('Transfer-Encoding: Chunked\r\n', '2\r\n{}\r\n0\r\n\r\n')],
    ['an empty Transfer-Encoding', post('Transfer-Encoding: \r\nContent-Length: 2\r\n', '{}')],
    ['an empty Content-Length', post('Content-Length: \r\n', '{}')],
  ])('%s', async (_name, bytes) => {
    const reply = await sendRaw(gateway.port, bytes)
    expect([reply.statuses, reply.closed]).toEqual([[400], true])
    expect(reply.text).toContain('x-weir-error-code: bad_framing')
  })

  test.each(['a', 'a:30000', '[::1]:30000', 'sub_domain.example.com', 'xn--bcher-kva.example'])(
    'the Host %s is accepted',
    async (host) => {
      const bytes = `GET /items/1 HTTP/1.1\r\nHost: ${host}\r\n\r\n`
      expect((await sendRaw(gateway.port, bytes, { until: answered })).statuses).toEqual([200])
    },
  )
})

describe('after a framing error no further request of the connection is served', () => {
  const bad = post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n')
  const next = 'GET /items/2 HTTP/1.1\r\nHost: a\r\n\r\n'

  test.each([
    ['a request in the same packet', [bad + next]],
    ['a request in a later packet', [bad, next]],
    ['a request in place of the body', [post('Content-Length: 2\r\nContent-Length: 2\r\n') + next]],
  ])('%s', async (_name, parts) => {
    const reply = await sendRaw(gateway.port, parts)
    expect(reply.text).not.toContain('200 OK')
    expect(reply.closed).toBe(true)
  })
})

describe('errors that the server library rejects: no request is served', () => {
  test.each([
    [
      'Content-Length with Transfer-Encoding',
      'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n',
      '2\r\n{}\r\n0\r\n\r\n',
    ],
    ['two Host headers', 'Host: b\r\nContent-Length: 2\r\n', '{}'],
    ['a signed Content-Length', 'Content-Length: +2\r\n', '{}'],
    ['an empty Content-Length', 'Content-Length: \r\n', '{}'],
    ['a bad chunk size', 'Transfer-Encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n'],
  ])('%s', async (_name, headers, body) => {
    const reply = await sendRaw(gateway.port, post(headers, body))
    expect(reply.text).not.toContain('200 OK')
    expect(reply.closed).toBe(true)
  })

  test.each([
    ['HTTP/1.0', 'GET /items/1 HTTP/1.0\r\nHost: a\r\n\r\n'],
    ['bare line feeds', 'GET /items/1 HTTP/1.1\nHost: a\n\n'],
    ['no Host', 'GET /items/1 HTTP/1.1\r\nX: y\r\n\r\n'],
    ['a folded header line', 'GET /items/1 HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n'],
    ['a space before the colon', 'GET /items/1 HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\n'],
    ['NUL in a value', 'GET /items/1 HTTP/1.1\r\nHost: a\r\nX: y\0z\r\n\r\n'],
    ['more than 100 headers', `GET /items/1 HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(120)}\r\n`],
  ])('%s', async (_name, bytes) => {
    const reply = await sendRaw(gateway.port, bytes, { waitMs: 400 })
    expect(reply.text).not.toContain('200 OK')
  })
})

describe('requests split over several packets', () => {
  const short = 'GET /items/1?q=2 HTTP/1.1\r\nHost: a\r\n\r\n'
  const withBody = post('Content-Length: 4\r\n', 'body')
  const chunked = post('Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n')
  const statusAndBody = ({ text, statuses }: RawResponse) => [statuses, text.slice(text.indexOf('\r\n\r\n'))]

  test.each([
    ['without a body', short],
    ['with a length', withBody],
    ['in chunks', chunked],
  ])('a request %s gets the same response for every split position', async (_name, bytes) => {
    const whole = statusAndBody(await sendRaw(gateway.port, bytes, { until: answered }))
    expect(whole[0]).toEqual([200])
    for (let place = 1; place < bytes.length; place++) {
      const parts = [bytes.slice(0, place), bytes.slice(place)]
      const reply = await sendRaw(gateway.port, parts, { until: answered, betweenPartsMs: 2 })
      expect([place, ...statusAndBody(reply)]).toEqual([place, ...whole])
    }
  })

  test('a request may arrive byte by byte', async () => {
    for (const bytes of [short, withBody, chunked]) {
      const reply = await sendRaw(gateway.port, [...bytes], { until: answered, betweenPartsMs: 1 })
      expect(reply.statuses).toEqual([200])
    }
  })
})

describe('requests that the server library rejects (docs/guide/http-server.md)', () => {
  test.each([
    ['HTTP/1.0', 'GET /items/1 HTTP/1.0\r\nHost: a\r\n\r\n'],
    ['the absolute form', 'GET http://a/items/1 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['the asterisk form', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('%s: one complete response with 505 and a closed connection, immediately', async (_name, bytes) => {
    const reply = await sendRaw(gateway.port, bytes, { waitMs: 5_000 })
    expect([reply.statuses, reply.closed]).toEqual([[505], true])
    expect(reply.text.toLowerCase()).toContain('connection: close\r\n')
    expect(reply.text).not.toMatch(/^uwebsockets:/im)
  })

  test.each([
    ['more than 100 headers', 431, `${get}${'X: y\r\n'.repeat(120)}\r\n`],
    ['a head over 150 KB', 431, `${get}X: ${'y'.repeat(150_000)}\r\n\r\n`],
    ['no Host', 400, 'GET /items/1 HTTP/1.1\r\nX: y\r\n\r\n'],
    ['two Host headers', 400, `${get}Host: b\r\n\r\n`],
    ['a signed Content-Length', 400, post('Content-Length: +2\r\n', '{}')],
  ])('%s: %i and a closed connection', async (_name, status, bytes) => {
    const reply = await sendRaw(gateway.port, bytes, { waitMs: 5_000 })
    expect([reply.statuses, reply.closed]).toEqual([[status], true])
    expect(reply.text.toLowerCase()).toContain('connection: close\r\n')
  })

  test('no response names the server library', async () => {
    const bytes = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
    for (const path of ['/items/1', '/nowhere']) {
      const reply = await sendRaw(gateway.port, bytes(path), { until: answered })
      expect(reply.text.toLowerCase()).not.toContain('uwebsockets')
    }
  })

  test('white space around header values is removed, and non-ASCII bytes are kept', async () => {
    const head = 'POST /header HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nx-shown:'
    for (const [sent, shown] of [
      [' a ', 'a'],
      ['', ''],
      ['  ', ''],
      [' a\u00fc\u{1f600}b ', 'a\u00fc\u{1f600}b'],
    ]) {
      const reply = await sendRaw(gateway.port, `${head}${sent}\r\n\r\n`, { until: answered })
      expect(JSON.parse(reply.bytes.toString().split('\r\n\r\n')[1])).toEqual({ shown })
    }
  })
})

describe('header limits', () => {
  test('more header lines than the limit get 431 and a closed connection', async () => {
    const lines = Array.from({ length: 95 }, (_, i) => `X-${i}: y\r\n`).join('')
    const reply = await sendRaw(gateway.port, `GET /items/1 HTTP/1.1\r\nHost: a\r\n${lines}\r\n`)
    expect(reply.statuses).toEqual([431])
    expect(reply.closed).toBe(true)
    expect(reply.text).toContain('"code":"headers_too_large"')
  })

  test('a header block beyond the byte limit gets 431', async () => {
    const reply = await sendRaw(
      gateway.port,
      `GET /items/1 HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`,
    )
    expect(reply.statuses).toEqual([431])
  })

  test('a large token and cookies in several packets are accepted', async () => {
    const block = `GET /items/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${'t'.repeat(8_000)}\r\nCookie: ${'c'.repeat(8_000)}\r\n\r\n`
    const reply = await sendRaw(
      gateway.port,
      [block.slice(0, 5_000), block.slice(5_000, 12_000), block.slice(12_000)],
      { until: answered },
    )
    expect(reply.statuses).toEqual([200])
  })
})

describe('bodies', () => {
  test('a body of exactly the limit passes, one byte more gets 413', async () => {
    const exact = await fetch(`${gateway.url}/echo`, { method: 'POST', body: 'x'.repeat(1000) })
    expect([exact.status, await exact.text()]).toEqual([200, '1000'])
    const over = await fetch(`${gateway.url}/echo`, { method: 'POST', body: 'x'.repeat(1001) })
    expect(over.status).toBe(413)
    expect(await over.json()).toMatchObject({
      error: { type: 'invalid_request_error', code: 'payload_too_large' },
    })
  })

  test('a chunked body over the limit gets 413', async () => {
    const chunk = `190\r\n${'x'.repeat(400)}\r\n`
    const reply = await sendRaw(
      gateway.port,
      post('Transfer-Encoding: chunked\r\n', `${chunk.repeat(3)}0\r\n\r\n`),
    )
    expect(reply.statuses).toEqual([413])
  })

  test('a body in several packets is complete', async () => {
    const reply = await sendRaw(gateway.port, [post('Content-Length: 9\r\n', 'abc'), 'def', 'ghi'], {
      until: answered,
    })
    expect(reply.text.endsWith('\r\n\r\n9')).toBe(true)
  })
})

describe('routes and methods', () => {
  test('an unknown path gets 404 with a request id and CORS headers', async () => {
    const reply = await fetch(`${gateway.url}/nope`, { headers: { origin: 'http://o' } })
    expect(reply.status).toBe(404)
    expect(await reply.json()).toMatchObject({ error: { type: 'not_found_error', code: 'route_not_found' } })
    expect(reply.headers.get('x-request-id')).toMatch(/^req-[A-Za-z0-9]{24}$/)
    expect(reply.headers.get('access-control-allow-origin')).toBe('*')
  })

  test('a route of a plugin that is not enabled gets 404 with the name of the plugin', async () => {
    for (const path of ['/wasm', '/wasm/files?name=a']) {
      const reply = await fetch(`${gateway.url}${path}`, { method: 'POST' })
      expect(reply.status).toBe(404)
      expect(await reply.json()).toMatchObject({
        error: {
          code: 'plugin_not_enabled',
          message: `no route ${path.split('?')[0]}: the plugin wasm is not enabled; add 'wasm: {}' under plugins`,
        },
      })
    }
    const similar = await fetch(`${gateway.url}/wasmtime`)
    expect(await similar.json()).toMatchObject({ error: { code: 'route_not_found' } })
  })

  test('a trailing slash is a different path', async () => {
    expect((await fetch(`${gateway.url}/items/1/`)).status).toBe(404)
  })

  test('a wrong method gets 405 with Allow', async () => {
    const reply = await fetch(`${gateway.url}/items/1`, { method: 'DELETE' })
    expect(reply.status).toBe(405)
    expect(reply.headers.get('allow')).toBe('GET, HEAD, OPTIONS')
    expect(await reply.json()).toMatchObject({ error: { type: 'method_not_allowed' } })
  })

  test('the connection stays open after a HEAD (RFC 9112 section 9.3)', async () => {
    const head = 'HEAD /items/1 HTTP/1.1\r\nhost: x\r\n\r\n'
    const reply = await sendRaw(gateway.port, [head, head, head], { betweenPartsMs: 50 })
    expect(reply.statuses).toEqual([200, 200, 200])
    expect(reply.closed).toBe(false)
    expect(reply.text.match(/content-length: (\d+)/gi)).toHaveLength(3)
  })

  test('HEAD responds like GET without the body', async () => {
    const reply = await fetch(`${gateway.url}/items/1`, { method: 'HEAD' })
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-length')).toBe(String(JSON.stringify({ id: '1', q: null }).length))
    expect(await reply.text()).toBe('')
  })

  test('percent-encoded ids and queries are decoded', async () => {
    const reply = await fetch(`${gateway.url}/items/a%2Fb%20c?q=1%202`)
    expect(await reply.json()).toEqual({ id: 'a/b c', q: '1 2' })
  })
})

describe('x-request-id', () => {
  const idOf = async (headers: Record<string, string>) =>
    (await fetch(`${gateway.url}/items/1`, { headers })).headers.get('x-request-id')

  test("a client's id is returned; the first configured header wins", async () => {
    expect(await idOf({ 'x-request-id': 'mine' })).toBe('mine')
    expect(await idOf({ 'x-correlation-id': 'other' })).toBe('other')
    expect(await idOf({ 'request-id': 'c', 'x-trace-id': 'b', 'x-correlation-id': 'a' })).toBe('a')
  })

  test('an empty value is ignored; generated ids differ', async () => {
    expect(await idOf({ 'x-request-id': '', 'x-trace-id': 'next' })).toBe('next')
    const [one, two] = [await idOf({}), await idOf({})]
    expect(one).toMatch(/^req-[A-Za-z0-9]{24}$/)
    expect(one).not.toBe(two)
  })
})

describe('CORS', () => {
  test('without a list any origin is allowed, and preflights get 200', async () => {
    const reply = await fetch(`${gateway.url}/echo`, {
      method: 'OPTIONS',
      headers: { origin: 'http://o', 'access-control-request-method': 'POST' },
    })
    expect([reply.status, await reply.text()]).toEqual([200, ''])
    expect(reply.headers.get('access-control-allow-methods')).toBe('*')
    expect(reply.headers.get('access-control-max-age')).toBe('3600')
    expect((await fetch(`${gateway.url}/nope`, { method: 'OPTIONS' })).status).toBe(404)
  })

  test('with a list only those origins are allowed', async () => {
    const strict = await startGateway({
      own: [echo],
      plugins: {},
      kernel: { http: { corsOrigins: ['http://good'] } },
    })
    try {
      const from = (origin: string, method: string) =>
        fetch(`${strict.url}/items/1`, { method, headers: { origin } })
      const good = await from('http://good', 'GET')
      expect(good.headers.get('access-control-allow-origin')).toBe('http://good')
      expect(good.headers.get('access-control-expose-headers')).toBe('x-request-id, x-weir-model')
      expect((await from('http://bad', 'GET')).headers.get('access-control-allow-origin')).toBeNull()
      const preflight = await from('http://good', 'OPTIONS')
      expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT')
      expect(preflight.headers.get('access-control-allow-headers')).toContain('x-api-key')
    } finally {
      await strict.stop()
    }
  })
})

test.each([
  ['of a route', `${get}\r\n`],
  ['of an unknown path', 'GET /unknown HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['of a preflight', 'OPTIONS /echo HTTP/1.1\r\nHost: a\r\nOrigin: http://a.example\r\n\r\n'],
  ['with a body', post('Content-Length: 2\r\n', '{}')],
])('a client that sends many requests %s at once is disconnected', async (_, request) => {
  const { closed, statuses } = await sendRaw(gateway.port, request.repeat(2_000))
  expect(closed).toBe(true)
  expect(statuses.length).toBeLessThan(200)
})

test('many clients at once are all served', async () => {
  const one = `${get}Connection: close\r\n\r\n`
  const unknown = 'GET /unknown HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
  const body = post('Content-Length: 2\r\nConnection: close\r\n', '{}')
  const requests = Array.from({ length: 300 }, () => [one, unknown, body]).flat()
  const answers = await Promise.all(requests.map((request) => sendRaw(gateway.port, request)))
  expect(answers.map(({ statuses }) => statuses.join())).toEqual(
    requests.map((request) => (request === unknown ? '404' : '200')),
  )
})
