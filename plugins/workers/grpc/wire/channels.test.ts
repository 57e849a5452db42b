import dns from 'node:dns'
import { once } from 'node:events'
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { Channels } from './channels.ts'
import { framed } from './message-framer.ts'

const servers: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of servers.splice(0)) await close()
})

/** Answers every call with its own address. */
async function serve(address: string, port: number): Promise<{ port: number; close: () => Promise<void> }> {
  const sessions = new Set<ServerHttp2Session>()
  const server: Http2Server = createServer()
  server.on('session', (session) => void sessions.add(session))
  server.on('stream', (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(framed(Buffer.from(address)))
  })
  server.listen(port, address)
  await once(server, 'listening')
  const close = async () => {
    for (const session of sessions) session.destroy()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  servers.push(close)
  return { port: (server.address() as AddressInfo).port, close }
}

test('the name of an engine that moved is resolved again within seconds', async () => {
  const before = await serve('127.0.0.1', 0)
  let address = '127.0.0.1'
  // The system's resolver; another one cannot be given to the library.
  vi.spyOn(dns.promises, 'lookup').mockImplementation((async () => [{ address, family: 4 }]) as never)
  const channels = new Channels({
    keepaliveMs: 30_000,
    keepaliveTimeoutMs: 10_000,
    maxMessageBytes: 1_048_576,
    streamWindowBytes: 65_535,
    maxReconnectWaitMs: 200,
    caFile: null,
  })
  servers.push(async () => channels.close())
  const target = { url: `grpc://engine.test:${before.port}`, apiKey: null }
  const ask = async () =>
    String(await channels.unary({ target, path: '/weir.Test/Ask', body: Buffer.alloc(0), timeoutMs: 500 }))
  expect(await ask()).toBe('127.0.0.1')
  await serve('127.0.0.2', before.port)
  address = '127.0.0.2'
  await before.close()
  await expect.poll(() => ask().catch(String), { timeout: 10_000 }).toBe('127.0.0.2')
})
