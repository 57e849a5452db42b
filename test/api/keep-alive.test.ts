/** `kernel.http.keepAlive`: who closes the connection after a response. Real sockets and a scripted worker. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiErrorFormat, type Host } from '#kernel'
import { type HookedGateway, openHooked } from '../support/hooked-gateway.ts'
import { sendRaw } from '../support/raw-socket.ts'
import { jsonAnswer, sseAnswer } from '../support/scripted-worker.ts'

const LARGE = Buffer.alloc(100_000, 'x')

function routes(host: Host): void {
  const base = {
    access: 'public',
    errors: apiErrorFormat,
    docs: { summary: 's', tag: 't', responses: {} },
  } as const
  host.route({ ...base, method: 'GET', path: '/whole', handler: (ctx) => ctx.text(200, 'whole') })
  host.route({ ...base, method: 'GET', path: '/large', handler: (ctx) => ctx.send(200, 'text/plain', LARGE) })
  host.route({ ...base, method: 'GET', path: '/nothing', handler: (ctx) => ctx.send(204, 'text/plain', '') })
  host.route({
    ...base,
    method: 'GET',
    path: '/events',
    handler: (ctx) => {
      const events = ctx.sse()
      events.write('data: 1\n\n')
      setImmediate(() => events.end('data: 2\n\n'))
    },
  })
}

let gateway: HookedGateway
const open = (http: Record<string, unknown>) =>
  openHooked(routes, {
    kernel: { http: { maxBodyBytes: 1_000, ...http } },
    answer: ({ body }) =>
      String(body).includes('stream') ? sseAnswer(['1', '[DONE]']) : jsonAnswer({ a: 1 }),
  })
const head = (line: string, more = '') => `${line} HTTP/1.1\r\nHost: a\r\n${more}\r\n`
const post = (path: string, body: string) =>
  `${head(`POST ${path}`, `Content-Length: ${body.length}\r\n`)}${body}`

const CLOSED_BY_GATEWAY: readonly [string, string, number][] = [
  ['a whole response', head('GET /whole'), 200],
  ['a relayed response', post('/relay', '{"model":"m"}'), 200],
  ['an unknown path', head('GET /nowhere'), 404],
  ['an unknown method', head('DELETE /whole'), 405],
  ['a body beyond the limit', post('/relay', 'x'.repeat(2_000)), 413],
  ['a broken framing', `${head('POST /relay', 'Transfer-Encoding: xchunked\r\n')}`, 400],
  ['a preflight', head('OPTIONS /whole', 'Origin: http://b\r\nAccess-Control-Request-Method: GET\r\n'), 200],
]
/** The server library cannot close after these; the header makes the client close. */
const CLOSED_BY_CLIENT: readonly [string, string, number][] = [
  ['a body of many packets', head('GET /large'), 200],
  ['events of the gateway', head('GET /events'), 200],
  ['a relayed stream', post('/relay', '{"model":"m","stream":true}'), 200],
  ['a response to HEAD', head('HEAD /whole'), 200],
  ['a response without content', head('GET /nothing'), 204],
]
const closeHeaders = (text: string) => text.toLowerCase().split('\r\nconnection: close\r\n').length - 1

describe('keepAlive: false', () => {
  beforeAll(async () => {
    gateway = await open({ keepAlive: false })
  })
  afterAll(() => gateway.close())

  test.each(CLOSED_BY_GATEWAY)(
    '%s has connection: close, and the gateway closes the connection',
    async (_, bytes, status) => {
      const reply = await sendRaw(gateway.gateway.port, bytes, { waitMs: 5_000 })
      expect(reply.statuses).toEqual([status])
      expect(reply.closed).toBe(true)
      expect(closeHeaders(reply.text)).toBe(1)
    },
  )

  test.each(CLOSED_BY_CLIENT)('%s has connection: close', async (_, bytes, status) => {
    const reply = await sendRaw(gateway.gateway.port, bytes)
    expect(reply.statuses).toEqual([status])
    expect(closeHeaders(reply.text)).toBe(1)
  })
})

test('by default connections are kept', async () => {
  gateway = await open({})
  const kept = [...CLOSED_BY_GATEWAY, ...CLOSED_BY_CLIENT].filter(
    ([, , status]) => status < 400 || status === 404,
  )
  for (const [, bytes, status] of kept) {
    const reply = await sendRaw(gateway.gateway.port, bytes)
    expect([reply.statuses, reply.closed, closeHeaders(reply.text)]).toEqual([[status], false, 0])
  }
  await gateway.close()
})
