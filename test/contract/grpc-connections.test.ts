/** gRPC connections: idle connections, and more calls than the concurrent stream limit of the engine. */
import { once } from 'node:events'
import { createServer, type ServerHttp2Session, type ServerHttp2Stream, type Settings } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { UpstreamHandler } from '#kernel'
import type { GrpcConfig } from '../../plugins/workers/grpc/config.ts'
import { GrpcTransport } from '../../plugins/workers/grpc/wire/grpc-transport.ts'
import { H2Connections } from '../../plugins/workers/grpc/wire/h2-connections.ts'
import { framed } from '../../plugins/workers/grpc/wire/message-framer.ts'
import { SentRequests } from '../../plugins/workers/grpc/wire/sent-requests.ts'
import { workerEntry } from '../support/worker-entry.ts'

const CONFIG: GrpcConfig = {
  keepaliveMs: 20,
  keepaliveTimeoutMs: 10_000,
  maxMessageBytes: 1_048_576,
  streamWindowBytes: 65_535,
  maxReconnectWaitMs: 200,
  caFile: null,
}
const LIMITS = { connectMs: 5_000, headMs: 5_000, firstTokenMs: 0, idleMs: 5_000, requestMs: 0 }

const endings: (() => unknown)[] = []
afterEach(() => {
  for (const end of endings.splice(0).reverse()) end()
})

/** Opens an engine and returns a function that sends a request over one connection. */
async function openPair(serve: (stream: ServerHttp2Stream) => void, settings: Settings = {}) {
  const sessions: ServerHttp2Session[] = []
  const server = createServer({ settings })
  server.on('session', (session) => {
    session.on('error', () => {})
    sessions.push(session)
  })
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.resume()
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    serve(stream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`
  const connections = new H2Connections(CONFIG)
  const transport = new GrpcTransport(connections, new SentRequests())
  endings.push(() => {
    connections.close()
    for (const session of sessions) session.destroy()
    server.close()
  })
  const worker = workerEntry({ slot: 0, url, connectionMode: 'grpc' })
  const send = () =>
    new Promise<string>((resolve, reject) => {
      let text = ''
      const handler: UpstreamHandler = {
        onResponseStart() {},
        onResponseData: (message) => {
          text += message.toString()
        },
        onResponseEnd: () => resolve(text),
        onResponseError: reject,
      }
      transport.open(worker, { method: 'POST', path: '/a.B/C', headers: [], body: null }, LIMITS, handler)
    })
  return { send, server, sessions }
}

test('an idle connection is pinged, stays open and carries the next request', async () => {
  const { send, server, sessions } = await openPair((stream) => stream.end(framed(Buffer.from('answer'))))
  let pings = 0
  const pinged = Promise.withResolvers<void>()
  server.on('session', (session) => {
    session.on('ping', () => {
      if (++pings === 5) pinged.resolve()
    })
  })
  expect(await send()).toBe('answer')
  await pinged.promise
  expect(await send()).toBe('answer')
  expect(sessions).toHaveLength(1)
})

test('calls beyond the concurrent stream limit are queued and complete', async () => {
  const LIMIT = 2
  const under: ServerHttp2Stream[] = []
  let most = 0
  const { send, sessions } = await openPair(
    (stream) => {
      under.push(stream)
      most = Math.max(most, under.length)
      stream.write(framed(Buffer.from('one ')))
      // Queued calls cannot start before this stream ends.
      setImmediate(() => {
        under.splice(under.indexOf(stream), 1)
        stream.end(framed(Buffer.from('two')))
      })
    },
    { maxConcurrentStreams: LIMIT },
  )
  // The stream limit is known after the first response.
  expect(await send()).toBe('one two')
  const answers = await Promise.all(Array.from({ length: 20 }, send))
  expect(answers).toEqual(new Array(20).fill('one two'))
  expect([most, sessions.length]).toEqual([LIMIT, 1])
})
