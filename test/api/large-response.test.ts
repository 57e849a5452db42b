/** Large responses to slow clients: every byte arrives, and the request counts as open until then. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { apiErrorFormat, definePlugin, Type } from '#kernel'
import { startGateway } from '../support/gateway.ts'
import { openSse, sip } from '../support/sse-client.ts'

let stop = async () => {}
afterEach(() => stop())

const BODY = Buffer.alloc(24_000_000, 'abcdefghij\n')
const big = definePlugin({
  manifest: { name: 'big', version: '0.0.0', description: 'answers much', config: Type.Object({}) },
  register(host) {
    host.route({
      method: 'GET',
      path: '/big',
      access: 'public',
      errors: apiErrorFormat,
      docs: { summary: 'big', tag: 'test', responses: {} },
      handler: (ctx) => ctx.send(200, 'text/plain', BODY),
    })
  },
})

/**
 * With its chunk frame such an event has the size of a loopback segment, so that a full send buffer ends at a chunk
 * boundary, and the frame of the next chunk is rejected as a whole.
 */
const EVENT = `data: ${'x'.repeat(65_475 - 8)}\n\n`
const EVENTS = 300
const ENDED_EVENTS = 100
const streaming = definePlugin({
  manifest: { name: 'streaming', version: '0.0.0', description: 'streams much', config: Type.Object({}) },
  register(host) {
    host.route({
      method: 'GET',
      path: '/streamed',
      access: 'public',
      errors: apiErrorFormat,
      docs: { summary: 'streamed', tag: 'test', responses: {} },
      handler: (ctx) => {
        const stream = ctx.sse()
        let left = EVENTS - 1
        const next = () => {
          if (left-- === 0) stream.end(EVENT)
          else if (stream.write(EVENT)) setImmediate(next)
          else ctx.flow.whenReleased(next)
        }
        next()
      },
    })
    host.route({
      method: 'GET',
      path: '/ended',
      access: 'public',
      errors: { ...apiErrorFormat, cutsFailedStreams: true },
      docs: { summary: 'ended', tag: 'test', responses: {} },
      handler: (ctx) => {
        const stream = ctx.sse()
        const events = EVENT.repeat(ENDED_EVENTS)
        if (ctx.queryParam('fails') === null) {
          stream.end(events)
          return
        }
        stream.write(events)
        setImmediate(() => ctx.fail(new Error('no')))
      },
    })
  },
})

async function readSlowly(port: number, onFirst: () => void): Promise<{ hash: string; bytes: number }> {
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /big HTTP/1.1\r\nhost: a\r\n\r\n')
  const hash = createHash('sha256')
  let bytes = 0
  let head = Buffer.alloc(0)
  let inBody = false
  const done = Promise.withResolvers<void>()
  socket.on('data', (data) => {
    if (!inBody) {
      head = Buffer.concat([head, data])
      const end = head.indexOf('\r\n\r\n')
      if (end < 0) return
      inBody = true
      onFirst()
      data = head.subarray(end + 4)
    }
    hash.update(data)
    bytes += data.length
    socket.pause()
    setTimeout(() => socket.resume(), 1)
    if (bytes >= BODY.length) done.resolve()
  })
  socket.on('close', () => done.resolve())
  await done.promise
  socket.destroy()
  if (!socket.closed) await once(socket, 'close')
  return { hash: hash.digest('hex'), bytes }
}

test('a slow client receives every byte, also during a shutdown', async () => {
  const gateway = await startGateway({ own: [big], plugins: {}, kernel: { shutdown: { graceMs: 60_000 } } })
  let stopped: Promise<void> | null = null
  stop = async () => {
    await stopped
  }
  const reply = await readSlowly(gateway.port, () => {
    stopped = gateway.stop()
  })
  expect(reply.bytes).toBe(BODY.length)
  expect(reply.hash).toBe(createHash('sha256').update(BODY).digest('hex'))
})

test('a slow client receives every byte of a stream of large events', async () => {
  const gateway = await startGateway({ own: [streaming], plugins: {} })
  stop = () => gateway.stop()
  for (let readers = 0; readers < 6; readers++) {
    const stream = openSse(`${gateway.url}/streamed`, { method: 'GET' })
    await sip(stream, 8)
    expect([stream.isWhole, stream.events.length, stream.bodyLength]).toEqual([
      true,
      EVENTS,
      EVENTS * EVENT.length,
    ])
  }
})

test('a slow client receives the rest of an ended stream during a shutdown', async () => {
  const gateway = await startGateway({
    own: [streaming],
    plugins: {},
    kernel: { shutdown: { graceMs: 60_000 } },
  })
  const stream = openSse(`${gateway.url}/ended`, { method: 'GET' })
  await stream.receive(1)
  stream.pause()
  const stopped = gateway.stop()
  stop = () => stopped
  await sip(stream, 1)
  expect([stream.isWhole, stream.events.length]).toEqual([true, ENDED_EVENTS])
})

test('a slow client of a stream that fails receives the error event, and then a closed connection', async () => {
  const gateway = await startGateway({ own: [streaming], plugins: {} })
  stop = () => gateway.stop()
  const stream = openSse(`${gateway.url}/ended?fails=1`, { method: 'GET' })
  await stream.receive(1)
  stream.pause()
  await sip(stream, 1)
  expect([stream.isWhole, stream.events.length]).toEqual([false, ENDED_EVENTS + 1])
})

test('a client that disconnects in the middle ends the request', async () => {
  const gateway = await startGateway({ own: [big], plugins: {} })
  stop = () => gateway.stop()
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write('GET /big HTTP/1.1\r\nhost: a\r\n\r\n')
  await once(socket, 'data')
  socket.destroy()
  const active = async () => {
    const text = await (await fetch(gateway.metricsUrl as string)).text()
    return Number(/^weir_http_connections_active (\d+)$/m.exec(text)?.[1])
  }
  await expect.poll(active).toBe(0)
})
