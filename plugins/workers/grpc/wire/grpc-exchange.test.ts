/** Calls over real HTTP/2 connections: how they end, flow control, and what engines receive. */
import { once } from 'node:events'
import {
  constants,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayError, UpstreamFailure, UpstreamLimits } from '#kernel'
import type { GrpcConfig } from '../config.ts'
import { type CallPlan, GrpcExchange } from './grpc-exchange.ts'
import { H2Connections } from './h2-connections.ts'
import { framed } from './message-framer.ts'

const CONFIG: GrpcConfig = {
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  maxMessageBytes: 1_048_576,
  streamWindowBytes: 65_535,
  maxReconnectWaitMs: 5_000,
  caFile: null,
}
const LIMITS: UpstreamLimits = {
  connectMs: 5_000,
  headMs: 5_000,
  firstTokenMs: 0,
  idleMs: 5_000,
  requestMs: 0,
}
const HEAD = { ':status': 200, 'content-type': 'application/grpc' }
const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

type Serve = (stream: ServerHttp2Stream, path: string) => void

async function listen(
  serve: Serve,
): Promise<{ url: string; server: Http2Server; sessions: ServerHttp2Session[] }> {
  const sessions: ServerHttp2Session[] = []
  const server = createServer()
  server.on('session', (session) => {
    session.on('error', () => {})
    sessions.push(session)
  })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    stream.resume()
    serve(stream, String(headers[':path']))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return { url: `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`, server, sessions }
}

const finish = (stream: ServerHttp2Stream, trailers: Record<string, string>) => {
  stream.on('wantTrailers', () => stream.sendTrailers(trailers))
  stream.end()
}
const begin = (stream: ServerHttp2Stream) => stream.respond(HEAD, { waitForTrailers: true })

function connectionsOf(config: Partial<GrpcConfig> = {}): H2Connections {
  const connections = new H2Connections({ ...CONFIG, ...config })
  cleanups.push(() => connections.close())
  return connections
}

interface Heard {
  readonly exchange: GrpcExchange
  readonly messages: string[]
  readonly ended: Promise<UpstreamFailure | null>
}

function call(
  connections: H2Connections,
  url: string,
  {
    limits = {},
    onData,
    ...plan
  }: Partial<CallPlan> & {
    limits?: Partial<UpstreamLimits>
    onData?: (exchange: GrpcExchange) => void
  } = {},
): Heard {
  const messages: string[] = []
  const end = Promise.withResolvers<UpstreamFailure | null>()
  const exchange: GrpcExchange = new GrpcExchange(
    connections.of({ url }),
    {
      path: '/engine/Generate',
      headers: [],
      body: Buffer.from('ask'),
      abortCall: null,
      maxMessageBytes: CONFIG.maxMessageBytes,
      ...plan,
    },
    { ...LIMITS, ...limits },
    {
      onResponseStart() {},
      onResponseData(message) {
        messages.push(message.toString())
        onData?.(exchange)
      },
      onResponseEnd: () => end.resolve(null),
      onResponseError: (failure) => end.resolve(failure),
    },
  )
  exchange.start()
  return { exchange, messages, ended: end.promise }
}

const codeOf = (failure: UpstreamFailure | null) =>
  (failure?.error as GatewayError | null)?.code ?? failure?.kind

describe('end of a call', () => {
  test('messages arrive in order, then the status of the trailers', async () => {
    const { url } = await listen((stream) => {
      begin(stream)
      for (const text of ['one', '', 'three']) stream.write(framed(Buffer.from(text)))
      finish(stream, { 'grpc-status': '0' })
    })
    const { messages, ended } = call(connectionsOf(), url)
    expect(await ended).toBeNull()
    expect(messages).toEqual(['one', '', 'three'])
  })

  test('the engine gets the message with its length, the metadata, and no HTTP headers', async () => {
    const got = Promise.withResolvers<[Buffer, Record<string, unknown>]>()
    const server = createServer()
    server.on('stream', (stream, headers) => {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        got.resolve([Buffer.concat(parts), headers])
        stream.respond({ ...HEAD, 'grpc-status': '0' }, { endStream: true })
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    cleanups.push(() => server.close())
    const headers = [
      'traceparent',
      '00-a',
      'x-a',
      '1',
      'x-a',
      '2',
      'accept',
      '*/*',
      'content-length',
      '9',
      'x-bin',
      'b',
      '__proto__',
      'p',
      'x-bad',
      'a\nb',
    ]
    const url = `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect(await call(connectionsOf(), url, { headers }).ended).toBeNull()
    const [body, sent] = await got.promise
    expect(body).toEqual(Buffer.from([0, 0, 0, 0, 3, ...Buffer.from('ask')]))
    expect(sent).toMatchObject({
      ':method': 'POST',
      ':path': '/engine/Generate',
      te: 'trailers',
      traceparent: '00-a',
      'x-a': '1, 2',
    })
    expect(
      Object.keys(sent).filter((name) => ['accept', 'content-length', 'x-bin', 'x-bad'].includes(name)),
    ).toEqual([])
  })

  test('a status without messages has its message decoded', async () => {
    const { url } = await listen((stream) =>
      stream.respond(
        { ...HEAD, 'grpc-status': '3', 'grpc-message': 'too%20long %zz'.slice(0, 10) },
        { endStream: true },
      ),
    )
    const failure = await call(connectionsOf(), url).ended
    expect([codeOf(failure), failure?.error?.message, failure?.responseStarted]).toEqual([
      'engine_invalid_argument',
      'too long',
      false,
    ])
  })

  test.each([
    [7, 'engine_unavailable'],
    [8, 'engine_invalid_argument'],
    [11, 'engine_exhausted'],
    [12, 'engine_permission_denied'],
    [2, 'engine_internal'],
    [0, 'engine_internal'],
  ])('a reset with code %i is %s', async (reset, code) => {
    const { url } = await listen((stream) => {
      stream.close(reset)
    })
    expect(codeOf(await call(connectionsOf(), url).ended)).toBe(code)
  })

  test.each([
    [503, 'engine_unavailable'],
    [404, 'engine_unimplemented'],
    [401, 'engine_unauthenticated'],
    [500, 'engine_internal'],
  ])('HTTP status %i of a server without gRPC is %s', async (status, code) => {
    const { url } = await listen((stream) => {
      stream.respond({ ':status': status, 'content-type': 'text/html' })
      stream.end('<html>')
    })
    expect(codeOf(await call(connectionsOf(), url).ended)).toBe(code)
  })

  test('an end without a status, and an end inside a message, are failures', async () => {
    const { url } = await listen((stream, path) => {
      if (path === '/none') {
        stream.respond(HEAD)
        stream.end()
      } else {
        begin(stream)
        stream.write(framed(Buffer.from('whole')).subarray(0, 7))
        finish(stream, { 'grpc-status': '0' })
      }
    })
    expect(codeOf(await call(connectionsOf(), url, { path: '/none' }).ended)).toBe('engine_internal')
    const cut = call(connectionsOf(), url, { path: '/cut' })
    expect([codeOf(await cut.ended), cut.messages]).toEqual(['engine_internal', []])
  })

  test('a message beyond the limit ends the call, and the engine call is cancelled', async () => {
    const closed = Promise.withResolvers<number>()
    const { url } = await listen((stream) => {
      stream.on('close', () => closed.resolve(stream.rstCode))
      begin(stream)
      stream.write(framed(Buffer.alloc(2_000)))
    })
    const failure = await call(connectionsOf(), url, { maxMessageBytes: 1_000 }).ended
    expect(codeOf(failure)).toBe('engine_message_unreadable')
    expect(await closed.promise).toBe(8)
  })

  test('endless informational responses end the call, and the engine call is cancelled', async () => {
    const cancelled = Promise.withResolvers<number>()
    const { url } = await listen((stream) => {
      const inform = () => {
        for (let i = 0; i < 100 && !stream.destroyed; i++) stream.additionalHeaders({ ':status': 103 })
        if (!stream.destroyed) setImmediate(inform)
      }
      stream.on('close', () => cancelled.resolve(stream.rstCode))
      inform()
    })
    const failure = await call(connectionsOf(), url).ended
    expect(failure?.message).toBe('the engine sent too many informational responses')
    expect(await cancelled.promise).toBe(constants.NGHTTP2_CANCEL)
  })

  test('a broken connection is engine_unavailable, after the messages received before it', async () => {
    const { url, sessions } = await listen((stream) => {
      begin(stream)
      stream.write(framed(Buffer.from('one')))
    })
    const heard = call(connectionsOf(), url, { onData: () => sessions[0].destroy() })
    const failure = await heard.ended
    expect([codeOf(failure), failure?.responseStarted, heard.messages]).toEqual([
      'engine_unavailable',
      true,
      ['one'],
    ])
  })

  test('a refused connection is engine_unavailable', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    server.close()
    await once(server, 'close')
    expect(codeOf(await call(connectionsOf(), `grpc://127.0.0.1:${port}`).ended)).toBe('engine_unavailable')
  })
})

describe('connections', () => {
  test('calls share a connection; after GOAWAY running calls finish and new ones use another', async () => {
    const go = Promise.withResolvers<void>()
    const { url, sessions } = await listen((stream, path) => {
      begin(stream)
      stream.write(framed(Buffer.from(path)))
      if (path === '/first') void go.promise.then(() => finish(stream, { 'grpc-status': '0' }))
      else finish(stream, { 'grpc-status': '0' })
    })
    const connections = connectionsOf()
    const begun = Promise.withResolvers<void>()
    const first = call(connections, url, { path: '/first', onData: () => begun.resolve() })
    expect(await call(connections, url, { path: '/second' }).ended).toBeNull()
    await begun.promise
    expect(sessions.length).toBe(1)
    const connection = connections.of({ url })
    sessions[0].goaway(0)
    while (connection.isOpen) await new Promise((resolve) => setImmediate(resolve))
    expect(await call(connections, url, { path: '/third' }).ended).toBeNull()
    expect(sessions.length).toBe(2)
    go.resolve()
    expect(await first.ended).toBeNull()
    expect(first.messages).toEqual(['/first'])
  })

  test('a connection without ping responses is closed with all its calls', async () => {
    // The server sends its HTTP/2 settings and nothing else.
    const server = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    cleanups.push(() => server.close())
    const url = `grpc://127.0.0.1:${(server.address() as AddressInfo).port}`
    const failure = await call(connectionsOf({ keepaliveMs: 20, keepaliveTimeoutMs: 20 }), url).ended
    expect([codeOf(failure), failure?.message]).toEqual([
      'engine_unavailable',
      expect.stringContaining('ping'),
    ])
  })

  test('connections of removed workers: idle ones close, running calls continue', async () => {
    const go = Promise.withResolvers<void>()
    const { url, sessions } = await listen((stream) => {
      begin(stream)
      stream.write(framed(Buffer.from('one')))
      void go.promise.then(() => finish(stream, { 'grpc-status': '0' }))
    })
    const connections = connectionsOf()
    const begun = Promise.withResolvers<void>()
    const { ended } = call(connections, url, { onData: () => begun.resolve() })
    await begun.promise
    const closed = once(sessions[0], 'close')
    connections.keepOnly([])
    go.resolve()
    expect(await ended).toBeNull()
    await closed
  })
})

describe('readers and limits', () => {
  test('a paused reader receives nothing, the engine is throttled, and no message is lost', async () => {
    const count = 400
    const body = Buffer.alloc(1_000, 'x')
    let written = 0
    const { url } = await listen((stream) => {
      begin(stream)
      const pump = () => {
        while (written < count) {
          written++
          if (!stream.write(framed(body))) return void stream.once('drain', pump)
        }
        finish(stream, { 'grpc-status': '0' })
      }
      pump()
    })
    const paused = Promise.withResolvers<void>()
    const heard = call(connectionsOf(), url, {
      onData: (exchange) => {
        if (heard.messages.length !== 3) return
        exchange.pause()
        paused.resolve()
      },
    })
    await paused.promise
    let before = -1
    while (before !== written) {
      before = written
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(heard.messages.length).toBe(3)
    // The window of a stream, and Node's buffers on both sides.
    expect(written).toBeLessThan(300)
    heard.exchange.resume()
    expect(await heard.ended).toBeNull()
    expect(heard.messages.length).toBe(count)
  })

  test('data beyond the windows of stream and connection arrives, beside a paused stream', async () => {
    const big = Buffer.alloc(1_000_000, 'x')
    const count = 40
    const { url } = await listen((stream, path) => {
      begin(stream)
      let written = 0
      const pump = () => {
        while (written < count) {
          written++
          if (!stream.write(framed(big))) return void stream.once('drain', pump)
        }
        finish(stream, { 'grpc-status': '0' })
      }
      if (path === '/big') return pump()
      stream.write(Buffer.concat([framed(Buffer.from('one')), framed(Buffer.alloc(60_000, 'y'))]))
      finish(stream, { 'grpc-status': '0' })
    })
    const connections = connectionsOf({ streamWindowBytes: 2_000_000 })
    const resting = call(connections, url, { path: '/rests', onData: (exchange) => exchange.pause() })
    let received = 0
    const { exchange, ended } = call(connections, url, {
      path: '/big',
      onData: () => {
        received++
        // The reader pauses now and then, and still gets all data in order.
        if (received % 10 !== 0) return
        exchange.pause()
        setImmediate(() => exchange.resume())
      },
    })
    expect(await ended).toBeNull()
    expect([received, resting.messages.length]).toEqual([count, 1])
    resting.exchange.resume()
    while (resting.messages.length < 2) await new Promise((resolve) => setImmediate(resolve))
    resting.exchange.resume()
    expect(await resting.ended).toBeNull()
  })

  test('padding is not part of the messages', async () => {
    const server = createServer({ paddingStrategy: constants.PADDING_STRATEGY_MAX })
    server.on('stream', (stream) => {
      begin(stream)
      for (let i = 0; i < 300; i++) stream.write(framed(Buffer.from(`message ${i}`)))
      finish(stream, { 'grpc-status': '0' })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    cleanups.push(() => server.close())
    const { port } = server.address() as AddressInfo
    // Its 300 frames of padding exceed several windows.
    const heard = call(connectionsOf(), `grpc://127.0.0.1:${port}`)
    expect(await heard.ended).toBeNull()
    expect(heard.messages).toEqual(Array.from({ length: 300 }, (_, i) => `message ${i}`))
  })

  test('an end during a pause is reported after the messages', async () => {
    const { url } = await listen((stream) => {
      begin(stream)
      stream.write(Buffer.concat(['a', 'b', 'c'].map((text) => framed(Buffer.from(text)))))
      finish(stream, { 'grpc-status': '5' })
    })
    const heard = call(connectionsOf(), url, {
      onData: (exchange) => {
        exchange.pause()
        setImmediate(() => exchange.resume())
      },
    })
    expect(codeOf(await heard.ended)).toBe('engine_not_found')
    expect(heard.messages).toEqual(['a', 'b', 'c'])
  })

  test('silence beyond the limit ends the call; the engine is notified and its call cancelled', async () => {
    const taken = Promise.withResolvers<string>()
    const closed = Promise.withResolvers<number>()
    const { url } = await listen((stream, path) => {
      if (path === '/engine/Abort') {
        taken.resolve(path)
        stream.respond({ ...HEAD, 'grpc-status': '0' }, { endStream: true })
        return
      }
      stream.on('close', () => closed.resolve(stream.rstCode))
      begin(stream)
      stream.write(framed(Buffer.from('one')))
    })
    const heard = call(connectionsOf(), url, {
      limits: { idleMs: 30 },
      abortCall: { path: '/engine/Abort', body: Buffer.from('id') },
    })
    expect((await heard.ended)?.kind).toBe('idle_timeout')
    expect([await taken.promise, await closed.promise]).toEqual(['/engine/Abort', 8])
  })

  test('an engine that accepts no connection in time fails the call', async () => {
    const server = createTcpServer((socket) => socket.pause()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    cleanups.push(() => server.close())
    const url = `grpcs://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect((await call(connectionsOf(), url, { limits: { connectMs: 30 } }).ended)?.kind).toBe('connect')
  })

  test('a call aborted before its connection is open does not reach the engine', async () => {
    const seen: string[] = []
    const { url } = await listen((stream, path) => {
      seen.push(path)
      stream.respond({ ...HEAD, 'grpc-status': '0' }, { endStream: true })
    })
    const connections = connectionsOf()
    call(connections, url, { path: '/left' }).exchange.abort()
    expect(await call(connections, url, { path: '/stays' }).ended).toBeNull()
    expect(seen).toEqual(['/stays'])
  })
})
