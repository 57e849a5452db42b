/** Connections to engines over gRPC between two requests. @source grpc facts 3.2, 8.2 */
import { once } from 'node:events'
import { createServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import type { UpstreamHandler } from '#kernel'
import type { GrpcConfig } from '../../plugins/grpc/config.ts'
import { EngineCalls } from '../../plugins/grpc/wire/engine-calls.ts'
import { GrpcTransport } from '../../plugins/grpc/wire/grpc-transport.ts'
import { H2Connections } from '../../plugins/grpc/wire/h2-connections.ts'
import { framed } from '../../plugins/grpc/wire/message-framer.ts'
import { workerEntry } from '../support/worker-entry.ts'

const CONFIG: GrpcConfig = {
  keepaliveMs: 20,
  keepaliveTimeoutMs: 10_000,
  maxMessageBytes: 1_048_576,
  streamWindowBytes: 65_535,
  maxReconnectWaitMs: 200,
  caFile: null,
}
const LIMITS = { connectMs: 5_000, firstByteMs: 5_000, idleMs: 5_000, requestMs: 0 }

test('8.2 #53: a connection that nobody uses is pinged, stays, and carries the next request', async () => {
  const sessions: ServerHttp2Session[] = []
  let pings = 0
  const pinged = Promise.withResolvers<void>()
  const server = createServer()
  server.on('session', (session) => {
    session.on('error', () => {})
    session.on('ping', () => {
      if (++pings === 5) pinged.resolve()
    })
    sessions.push(session)
  })
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.resume()
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(framed(Buffer.from('answer')))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`
  const connections = new H2Connections(CONFIG)
  const transport = new GrpcTransport(connections, new EngineCalls())
  const worker = workerEntry({ slot: 0, url, connectionMode: 'grpc' })
  const ask = () =>
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
  try {
    expect(await ask()).toBe('answer')
    await pinged.promise
    expect(await ask()).toBe('answer')
    expect(sessions).toHaveLength(1)
  } finally {
    connections.close()
    for (const session of sessions) session.destroy()
    server.close()
  }
})
