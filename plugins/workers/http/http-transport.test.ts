import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type LookupFunction, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import type {
  Exchange,
  HeaderList,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamLimits,
  UpstreamRequest,
} from '../../../kernel/contracts/transport.ts'
import type { WorkerEntry } from '../../../kernel/contracts/worker.ts'
import { HttpTransport, type HttpTransportOptions } from './http-transport.ts'

const OPTIONS: HttpTransportOptions = {
  keepAliveMs: 4000,
  maxIdlePerWorker: 10,
  maxResponseHeaderBytes: 16384,
}
const LIMITS: UpstreamLimits = {
  connectMs: 5000,
  headMs: 5000,
  firstTokenMs: 0,
  idleMs: 5000,
  requestMs: 20000,
}
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const EVENTS = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** One accepted connection of the scripted worker. */
class Peer {
  readonly socket: Socket
  received = ''
  #wake: () => void = () => {}

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      this.received += chunk.toString('latin1')
      this.#wake()
    })
    socket.on('close', () => this.#wake())
  }

  /** Reads one request, waiting until it is complete. */
  async request(): Promise<string> {
    for (;;) {
      const headEnd = this.received.indexOf('\r\n\r\n')
      if (headEnd !== -1) {
        const length = Number(/content-length: (\d+)/.exec(this.received.slice(0, headEnd))?.[1] ?? 0)
        const end = headEnd + 4 + length
        if (this.received.length >= end) {
          const request = this.received.slice(0, end)
          this.received = this.received.slice(end)
          return request
        }
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

/** A worker controlled by the test. */
class ScriptedWorker {
  readonly server: Server
  readonly peers: Peer[] = []
  #accepted: (() => void)[] = []

  constructor(server: Server) {
    this.server = server
  }

  accept(socket: Socket): void {
    this.peers.push(new Peer(socket))
    for (const wake of this.#accepted.splice(0)) wake()
  }

  /** The connection accepted as number `index`, 0-based. */
  async peer(index: number): Promise<Peer> {
    while (this.peers.length <= index) await new Promise<void>((resolve) => this.#accepted.push(resolve))
    return this.peers[index]
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }
}

async function startWorker(
  server = createServer(),
  event = 'connection',
  place = { host: '127.0.0.1', port: 0 },
): Promise<ScriptedWorker> {
  const worker = new ScriptedWorker(server)
  server.on(event, (socket: Socket) => worker.accept(socket))
  server.listen(place)
  await once(server, 'listening')
  cleanups.push(() => {
    for (const peer of worker.peers) peer.socket.destroy()
    server.close()
  })
  return worker
}

function openTransport(options: Partial<HttpTransportOptions> = {}): HttpTransport {
  const transport = new HttpTransport({ ...OPTIONS, ...options })
  cleanups.push(() => transport.close())
  return transport
}

function entry(url: string): WorkerEntry {
  return {
    slot: 0,
    id: 'id',
    url,
    workerType: 'regular',
    connectionMode: 'http',
    runtimeType: 'unspecified',
    apis: [],
    isExternal: false,
    provider: null,
    models: [],
    apiKey: null,
    priority: 50,
    cost: 1,
    labels: {},
    bootstrapPort: null,
    bootstrapHost: null,
    dataParallel: null,
    resilience: null,
    httpPool: null,
    revision: 1,
  }
}
const entryOf = (worker: ScriptedWorker, prefix = '') => entry(`http://127.0.0.1:${worker.port}${prefix}`)

/** Collects one response; steps can be awaited. */
class Client implements UpstreamHandler {
  exchange: Exchange | null = null
  status = 0
  headers: HeaderList = []
  contentLength = -2
  chunks: Buffer[] = []
  failure: UpstreamFailure | null = null
  isEnded = false
  readonly started: Promise<void>
  readonly done: Promise<this>
  onChunk: (chunk: Buffer) => void = () => {}
  onEnd: () => void = () => {}
  #start: () => void = () => {}
  #finish: () => void = () => {}
  #waiting: { bytes: number; wake: () => void } | null = null

  constructor() {
    this.started = new Promise((resolve) => {
      this.#start = resolve
    })
    this.done = new Promise((resolve) => {
      this.#finish = () => resolve(this)
    })
  }
  onResponseStart(status: number, headers: HeaderList, contentLength: number): void {
    Object.assign(this, { status, headers, contentLength })
    this.#start()
  }
  onResponseData(chunk: Buffer): void {
    this.chunks.push(Buffer.from(chunk))
    this.onChunk(chunk)
    if (this.#waiting !== null && this.body.length >= this.#waiting.bytes) this.#waiting.wake()
  }
  onResponseEnd(): void {
    expect(this.isOver).toBe(false)
    this.isEnded = true
    this.onEnd()
    this.#finish()
  }
  onResponseError(failure: UpstreamFailure): void {
    expect(this.isOver).toBe(false)
    this.failure = failure
    this.#start()
    this.#finish()
  }
  get isOver(): boolean {
    return this.isEnded || this.failure !== null
  }
  get body(): string {
    return Buffer.concat(this.chunks).toString('latin1')
  }
  async bytes(count: number): Promise<void> {
    if (this.body.length >= count) return
    await new Promise<void>((wake) => {
      this.#waiting = { bytes: count, wake }
    })
  }
}

function send(
  transport: HttpTransport,
  worker: WorkerEntry,
  request: Partial<UpstreamRequest> = {},
  limits: Partial<UpstreamLimits> = {},
  client = new Client(),
): Client {
  client.exchange = transport.open(
    worker,
    { method: 'POST', path: '/v1/x', headers: [], body: Buffer.from('{}'), ...request },
    { ...LIMITS, ...limits },
    client,
  )
  return client
}

describe('requests', () => {
  test('head and body are sent as written, with host, length and the prefix of the worker URL', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker, '/base/'), {
      path: '/v1/chat/completions?a=b',
      headers: ['content-type', 'application/json', 'authorization', 'Bearer k'],
    })
    const peer = await worker.peer(0)
    expect(await peer.request()).toBe(
      `POST /base/v1/chat/completions?a=b HTTP/1.1\r\nhost: 127.0.0.1:${worker.port}\r\n` +
        'content-type: application/json\r\nauthorization: Bearer k\r\ncontent-length: 2\r\n\r\n{}',
    )
    peer.socket.write('HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok')
    await client.done
    expect([client.status, client.body, client.contentLength]).toEqual([201, 'ok', 2])
    expect(client.headers).toEqual(['content-type', 'text/plain', 'content-length', '2'])
  })

  test('large and small bodies are sent unchanged', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    for (const size of [1, 16_384, 16_385, 3_000_000]) {
      const body = randomBytes(size)
      const client = send(transport, entryOf(worker), { body })
      const peer = await worker.peer(0)
      const request = await peer.request()
      expect(request.endsWith(body.toString('latin1'))).toBe(true)
      peer.socket.write(OK)
      await client.done
      expect(client.isEnded).toBe(true)
    }
    expect(worker.peers).toHaveLength(1)
  })

  test('the name of a worker is resolved for each connection, so that a worker that moved serves at once', async () => {
    const before = await startWorker()
    const { port } = before
    let address = '127.0.0.1'
    const lookup: LookupFunction = (_name, _options, done) => done(null, [{ address, family: 4 }])
    const transport = openTransport({ lookup })
    const worker = entry(`http://engine.test:${port}`)
    const first = send(transport, worker)
    const peer = await before.peer(0)
    peer.socket.write(OK)
    expect((await first.done).body).toBe('ok')
    before.server.close()
    peer.socket.destroy()
    expect((await send(transport, worker).done).failure).toMatchObject({ kind: 'connect' })
    const after = await startWorker(createServer(), 'connection', { host: '127.0.0.2', port })
    address = '127.0.0.2'
    const second = send(transport, worker)
    ;(await after.peer(0)).socket.write(OK)
    expect((await second.done).body).toBe('ok')
  })

  test('a path that would break the request line fails as protocol, asynchronously', async () => {
    const worker = await startWorker()
    for (const path of ['/a b', '/a\r\nx: y', 'a', '/\u010a', '']) {
      const client = send(openTransport(), entryOf(worker), { path })
      expect(client.isOver).toBe(false)
      await client.done
      expect(client.failure).toMatchObject({ kind: 'protocol', responseStarted: false })
    }
    expect(worker.peers).toHaveLength(0)
  })

  test('a worker without a usable URL fails as connect', async () => {
    for (const url of ['grpc://127.0.0.1:1', 'nonsense']) {
      const client = await send(openTransport(), entry(url)).done
      expect(client.failure).toMatchObject({ kind: 'connect', responseStarted: false })
    }
  })
})

describe('responses', () => {
  test('responses to HEAD have no body, whatever they announce, and keep the connection', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    for (let turn = 0; turn < 2; turn++) {
      const client = send(transport, entryOf(worker), { method: 'HEAD', body: null })
      const peer = await worker.peer(0)
      expect(await peer.request()).toMatch(/^HEAD \/v1\/x HTTP\/1\.1\r\nhost: [^\r]+\r\n\r\n$/)
      peer.socket.write('HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n')
      await client.done
      expect([client.contentLength, client.body]).toEqual([0, ''])
    }
  })

  test('a body until close ends with the connection', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const client = send(transport, entryOf(worker))
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.end('HTTP/1.1 200 OK\r\n\r\nuntil close')
    await client.done
    expect([client.body, client.isEnded, client.contentLength]).toEqual(['until close', true, -1])
    expect(transport.openConnections()).toBe(0)
  })

  test('invalid HTTP fails as protocol and closes the connection', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker))
    const peer = await worker.peer(0)
    await peer.request()
    const closed = once(peer.socket, 'close')
    peer.socket.write('HTTP/1.1 200 OK\r\nbad header\r\n\r\n')
    await Promise.all([client.done, closed])
    expect(client.failure).toMatchObject({ kind: 'protocol', responseStarted: true })
  })

  test('an event that arrives complete is not split, for any HTTP chunks', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker))
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(`${EVENTS}6\r\ndata: \r\n5\r\nhello\r\n2\r\n\n\n\r\n`)
    await client.bytes(13)
    expect(client.chunks.map(String)).toEqual(['data: hello\n\n'])
  })
})

describe('kept connections', () => {
  async function exchange(transport: HttpTransport, worker: ScriptedWorker, index: number, answer = OK) {
    const client = send(transport, entryOf(worker))
    const peer = await worker.peer(index)
    await peer.request()
    peer.socket.write(answer)
    return client.done
  }

  test('one connection carries consecutive requests', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    for (let turn = 0; turn < 5; turn++) expect((await exchange(transport, worker, 0)).body).toBe('ok')
    expect(worker.peers).toHaveLength(1)
    expect(transport.openConnections()).toBe(1)
  })

  test('a worker that responds before it has read the request loses the connection', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const client = send(transport, entryOf(worker), { body: Buffer.alloc(32 * 1024 * 1024) })
    const peer = await worker.peer(0)
    peer.socket.once('data', () => {
      peer.socket.pause()
      peer.socket.write('HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n')
    })
    await client.done
    expect([client.status, transport.openConnections()]).toEqual([413, 0])
  })

  test('concurrent requests have separate connections', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const clients = [send(transport, entryOf(worker)), send(transport, entryOf(worker))]
    for (let index = 0; index < 2; index++) {
      const peer = await worker.peer(index)
      await peer.request()
      peer.socket.write(OK)
    }
    for (const client of clients) expect((await client.done).body).toBe('ok')
    expect(transport.openConnections()).toBe(2)
  })

  test.each([
    ['connection: close', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok'],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok'],
    ['bytes after the response', `${OK}HTTP/1.1 200 OK\r\n\r\n`],
  ])('%s ends the connection with the response', async (_, answer) => {
    const worker = await startWorker()
    const transport = openTransport()
    expect((await exchange(transport, worker, 0, answer)).body).toBe('ok')
    expect((await exchange(transport, worker, 1)).body).toBe('ok')
  })

  test('bytes on an idle connection close it', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    await exchange(transport, worker, 0)
    const closed = once(worker.peers[0].socket, 'close')
    worker.peers[0].socket.write('HTTP/1.1 408 Request Timeout\r\n\r\n')
    await closed
    expect(transport.openConnections()).toBe(0)
  })

  test('an idle connection closed by the worker is dropped silently', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    await exchange(transport, worker, 0)
    const closed = once(worker.peers[0].socket, 'close')
    worker.peers[0].socket.end()
    await closed
    expect(transport.openConnections()).toBe(0)
    expect((await exchange(transport, worker, 1)).body).toBe('ok')
  })

  test('idle connections are closed after keepAliveMs', async () => {
    const worker = await startWorker()
    const transport = openTransport({ keepAliveMs: 40 })
    await exchange(transport, worker, 0)
    await once(worker.peers[0].socket, 'close')
    expect(transport.openConnections()).toBe(0)
  })

  test('at most maxIdlePerWorker connections stay open', async () => {
    const worker = await startWorker()
    const transport = openTransport({ maxIdlePerWorker: 1 })
    const clients = [0, 1, 2].map(() => send(transport, entryOf(worker)))
    for (let index = 0; index < 3; index++) {
      const peer = await worker.peer(index)
      await peer.request()
      peer.socket.write(OK)
    }
    for (const client of clients) await client.done
    expect(transport.openConnections()).toBe(1)
  })

  test('a request sent from the end callback of another uses its connection', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const first = send(transport, entryOf(worker))
    const second = new Client()
    first.onEnd = () => send(transport, entryOf(worker), {}, {}, second)
    const peer = await worker.peer(0)
    for (let turn = 0; turn < 2; turn++) {
      await peer.request()
      peer.socket.write(OK)
    }
    expect((await second.done).body).toBe('ok')
    expect(worker.peers).toHaveLength(1)
  })

  test('the connection of a response that was paused at its end is read again', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const client = send(transport, entryOf(worker))
    client.onChunk = () => client.exchange?.pause()
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(OK)
    await client.done
    expect((await exchange(transport, worker, 0)).body).toBe('ok')
  })

  test('a removed worker loses its idle connections; running exchanges finish', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const running = send(transport, entryOf(worker))
    const peer = await worker.peer(0)
    await peer.request()
    await exchange(transport, worker, 1)
    expect(transport.openConnections()).toBe(2)
    transport.onWorkersChanged([])
    expect(transport.openConnections()).toBe(1)
    peer.socket.write(OK)
    expect((await running.done).body).toBe('ok')
    expect(transport.openConnections()).toBe(0)
  })

  test('an unchanged worker keeps its idle connections, also under another path', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    await exchange(transport, worker, 0)
    transport.onWorkersChanged([entryOf(worker)])
    await exchange(transport, worker, 0)
    const client = send(transport, entryOf(worker, '/other'))
    expect(await worker.peers[0].request()).toMatch(/^POST \/other\/v1\/x /)
    worker.peers[0].socket.write(OK)
    expect((await client.done).body).toBe('ok')
    expect(worker.peers).toHaveLength(1)
  })

  test('workers outside the table keep their idle connections when unconnected ones are forgotten', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    await exchange(transport, worker, 0)
    transport.forgetUnconnected()
    await exchange(transport, worker, 0)
    expect(worker.peers).toHaveLength(1)
    worker.peers[0].socket.destroy()
    while (transport.openConnections() > 0) await new Promise((resolve) => setImmediate(resolve))
    transport.forgetUnconnected()
    await exchange(transport, worker, 1)
    expect(transport.openConnections()).toBe(1)
  })

  test("a worker's own limit of idle connections applies, and a change of it takes effect", async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const own = { ...entryOf(worker), httpPool: { maxIdle: 0 } }
    for (const index of [0, 1]) {
      const client = send(transport, own)
      const peer = await worker.peer(index)
      await peer.request()
      peer.socket.write(OK)
      await client.done
      expect(transport.openConnections()).toBe(0)
    }
    transport.onWorkersChanged([entryOf(worker)])
    await exchange(transport, worker, 2)
    expect(transport.openConnections()).toBe(1)
    transport.onWorkersChanged([own])
    expect(transport.openConnections()).toBe(0)
  })

  test("a worker's own idle time closes its connections, not those of its neighbour", async () => {
    const worker = await startWorker()
    const transport = openTransport()
    await exchange(transport, worker, 0)
    const client = send(transport, { ...entryOf(worker, '/other'), httpPool: { idleMs: 40 } })
    const peer = await worker.peer(1)
    await peer.request()
    peer.socket.write(OK)
    await client.done
    await once(peer.socket, 'close')
    expect(transport.openConnections()).toBe(1)
  })

  test('the ranks of one engine share its URL and connections', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    for (const rank of [0, 1]) {
      const baseUrl = entryOf(worker).url
      const client = send(transport, {
        ...entry(`${baseUrl}@${rank}`),
        dataParallel: { baseUrl, rank, size: 2 },
      })
      const peer = await worker.peer(0)
      expect(await peer.request()).toContain(`\r\nhost: 127.0.0.1:${worker.port}\r\n`)
      peer.socket.write(OK)
      expect((await client.done).body).toBe('ok')
    }
  })

  test('close fails running exchanges, closes idle connections and rejects new requests', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const running = send(transport, entryOf(worker))
    await (await worker.peer(0)).request()
    await exchange(transport, worker, 1)
    transport.close()
    expect(running.failure).toMatchObject({ kind: 'reset', responseStarted: false })
    expect(transport.openConnections()).toBe(0)
    expect((await send(transport, entryOf(worker)).done).failure).toMatchObject({ kind: 'connect' })
  })
})

describe('broken connections', () => {
  /** Leaves one idle connection and returns its peer. */
  async function warm(transport: HttpTransport, worker: ScriptedWorker): Promise<Peer> {
    const client = send(transport, entryOf(worker))
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(OK)
    await client.done
    return peer
  }

  test.each(['end', 'resetAndDestroy'] as const)(
    'a request on a stale connection (%s) is sent once more on a new one',
    async (way) => {
      const worker = await startWorker()
      const transport = openTransport()
      const peer = await warm(transport, worker)
      const body = randomBytes(40_000)
      const client = send(transport, entryOf(worker), { body })
      await peer.request()
      peer.socket[way]()
      const second = await worker.peer(1)
      expect((await second.request()).endsWith(body.toString('latin1'))).toBe(true)
      second.socket.write(OK)
      expect((await client.done).body).toBe('ok')
    },
  )

  test('a request is never sent a third time', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const peer = await warm(transport, worker)
    const client = send(transport, entryOf(worker))
    await peer.request()
    peer.socket.destroy()
    const second = await worker.peer(1)
    await second.request()
    second.socket.destroy()
    await client.done
    expect(client.failure).toMatchObject({ kind: 'reset', responseStarted: false })
    expect(worker.peers).toHaveLength(2)
  })

  test('a reused connection that breaks after the first response byte fails as reset', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const peer = await warm(transport, worker)
    const client = send(transport, entryOf(worker))
    await peer.request()
    peer.socket.end('H')
    await client.done
    expect(client.failure).toMatchObject({ kind: 'reset', responseStarted: true })
    expect(worker.peers).toHaveLength(1)
  })

  test('a new connection that breaks before the first byte fails as reset, without a retry', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker))
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.resetAndDestroy()
    await client.done
    expect(client.failure).toMatchObject({ kind: 'reset', responseStarted: false })
    expect(worker.peers).toHaveLength(1)
  })

  test('a truncated stream keeps the received data and fails as reset', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker))
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(`${EVENTS}3\r\nabc\r\n`)
    await client.bytes(3)
    peer.socket.resetAndDestroy()
    await client.done
    expect(client.body).toBe('abc')
    expect(client.failure).toMatchObject({ kind: 'reset', responseStarted: true })
  })

  test('a refused connection fails as connect', async () => {
    const worker = await startWorker()
    const target = entryOf(worker)
    worker.server.close()
    await once(worker.server, 'close')
    const client = await send(openTransport(), target).done
    expect(client.failure).toMatchObject({ kind: 'connect', responseStarted: false })
    expect(client.failure?.message).toContain('ECONNREFUSED')
  })
})

describe('limits', () => {
  test('a TLS handshake that hangs fails as connect', async () => {
    const worker = await startWorker()
    const target = entry(`https://127.0.0.1:${worker.port}`)
    const client = await send(openTransport(), target, {}, { connectMs: 50 }).done
    expect(client.failure).toMatchObject({ kind: 'connect', responseStarted: false })
  })

  test('a missing response fails as first_byte_timeout and closes the connection', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker), {}, { headMs: 50 })
    const peer = await worker.peer(0)
    await Promise.all([client.done, once(peer.socket, 'close')])
    expect(client.failure).toMatchObject({ kind: 'first_byte_timeout', responseStarted: false })
  })

  test.each([
    ['first_byte_timeout', { headMs: 300 }],
    ['idle_timeout', { headMs: 0, firstTokenMs: 0, idleMs: 300 }],
  ])('a head that arrives byte by byte fails as %s: bytes do not extend the limit', async (kind, limits) => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker), {}, limits)
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write('HTTP/1.1 200 OK\r\nx-long: ')
    const dripping = setInterval(() => peer.socket.write('a'), 20)
    cleanups.push(() => clearInterval(dripping))
    await client.done
    expect(client.failure).toMatchObject({ kind, responseStarted: true })
  })

  test('comments of an event stream are no token: firstTokenMs passes', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker), {}, { firstTokenMs: 300 })
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(`${EVENTS}6\r\n: kee\n\r\n`)
    const dripping = setInterval(() => peer.socket.write('4\r\n: a\n\r\n'), 20)
    cleanups.push(() => clearInterval(dripping))
    await client.done
    expect(client.failure).toMatchObject({ kind: 'first_byte_timeout', responseStarted: true })
  })

  test('silence within the body fails as idle_timeout', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker), {}, { idleMs: 50 })
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(EVENTS)
    await client.done
    expect(client.failure).toMatchObject({ kind: 'idle_timeout', responseStarted: true })
  })

  test('a stream that exceeds its time limit fails as request_timeout', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker), {}, { requestMs: 150 })
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(EVENTS)
    const ticking = setInterval(() => peer.socket.write('1\r\nx\r\n'), 10)
    cleanups.push(() => clearInterval(ticking))
    await client.done
    expect(client.failure).toMatchObject({ kind: 'request_timeout', responseStarted: true })
  })

  test('a paused exchange has no idle limit until it is resumed', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const paused = send(transport, entryOf(worker), {}, { idleMs: 50 })
    const witness = send(transport, entryOf(worker), {}, { idleMs: 250 })
    for (let index = 0; index < 2; index++) {
      const peer = await worker.peer(index)
      await peer.request()
      peer.socket.write(EVENTS)
    }
    await paused.started
    paused.exchange?.pause()
    await witness.done
    expect(witness.failure?.kind).toBe('idle_timeout')
    expect(paused.isOver).toBe(false)
    paused.exchange?.resume()
    await paused.done
    expect(paused.failure?.kind).toBe('idle_timeout')
  })
})

describe('abort', () => {
  test('an aborted stream is closed on the worker within 100 ms, and no further events follow', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const client = send(transport, entryOf(worker))
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(`${EVENTS}3\r\nabc\r\n`)
    await client.bytes(3)
    const startedMs = performance.now()
    client.exchange?.abort()
    client.exchange?.abort()
    await once(peer.socket, 'close')
    // The bound allows for a loaded machine; nothing else would close it.
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    expect([client.isOver, transport.openConnections()]).toEqual([false, 0])
  })

  test('abort in the first callback prevents the others', async () => {
    const worker = await startWorker()
    const client = new Client()
    client.onResponseStart = () => client.exchange?.abort()
    send(openTransport(), entryOf(worker), {}, {}, client)
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(OK)
    await once(peer.socket, 'close')
    expect([client.body, client.isOver]).toEqual(['', false])
  })

  test('abort before the connection is open leaves no connection behind', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const client = send(transport, entryOf(worker))
    client.exchange?.abort()
    expect(transport.openConnections()).toBe(0)
    const next = send(transport, entryOf(worker))
    // Whether the aborted attempt was accepted is a race; the next one always is.
    const answered = [0, 1].map(async (index) => {
      const peer = await worker.peer(index)
      await peer.request()
      return peer.socket.write(OK)
    })
    await Promise.race(answered)
    await next.done
    expect([next.isEnded, client.isOver]).toEqual([true, false])
  })

  test('abort after the end does not affect the next request on the connection', async () => {
    const worker = await startWorker()
    const transport = openTransport()
    const first = send(transport, entryOf(worker))
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(OK)
    await first.done
    const second = send(transport, entryOf(worker))
    first.exchange?.abort()
    first.exchange?.pause()
    await peer.request()
    peer.socket.write(OK)
    expect((await second.done).body).toBe('ok')
  })
})

describe('slow readers', () => {
  test('a paused exchange stalls the worker, and in-flight data stays bounded', async () => {
    const worker = await startWorker()
    const client = send(openTransport(), entryOf(worker))
    client.onChunk = () => client.exchange?.pause()
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(EVENTS)
    const block = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 'x'), Buffer.from('\r\n')])
    let written = 0
    // Until the worker's own socket buffers 1 MiB.
    while (peer.socket.writableLength < 1_048_576 && written < 256) {
      peer.socket.write(block)
      written++
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(written).toBeLessThan(256)
    expect(client.chunks).toHaveLength(1)
    client.onChunk = () => {}
    client.exchange?.resume()
    await client.bytes(written * 65_536)
    peer.socket.write('0\r\n\r\n')
    await client.done
    expect(client.body.length).toBe(written * 65_536)
  })

  test('large data passes unchanged through many pauses', async () => {
    const worker = await startWorker()
    const hash = createHash('sha256')
    let received = 0
    let pauses = 0
    let isResting = false
    const client = new Client()
    client.onResponseData = (chunk) => {
      expect(isResting).toBe(false)
      hash.update(chunk)
      received += chunk.length
      if (++pauses % 7 !== 0) return
      isResting = true
      client.exchange?.pause()
      setImmediate(() => {
        isResting = false
        client.exchange?.resume()
      })
    }
    send(openTransport(), entryOf(worker), {}, {}, client)
    const peer = await worker.peer(0)
    await peer.request()
    peer.socket.write(EVENTS)
    const total = 64 * 1024 * 1024
    const sent = createHash('sha256')
    const source = randomBytes(1_000_003)
    for (let byteCount = 0, size = 1; byteCount < total; size = (size * 7 + 13) % 200_000) {
      const piece = source.subarray(0, Math.min(size, total - byteCount))
      byteCount += piece.length
      if (piece.length === 0) continue
      sent.update(piece)
      const chunk = [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]
      if (!peer.socket.write(Buffer.concat(chunk))) await once(peer.socket, 'drain')
    }
    peer.socket.write('0\r\n\r\n')
    await client.done
    expect(received).toBe(total)
    expect(hash.digest('hex')).toBe(sent.digest('hex'))
  })
})

describe('https', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-tls-'))
  const keyFile = join(folder, 'key.pem')
  const certFile = join(folder, 'cert.pem')
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
      .concat(['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'])
      .concat(['-keyout', keyFile, '-out', certFile]),
    { stdio: 'ignore' },
  )
  const key = readFileSync(keyFile)
  const cert = readFileSync(certFile)
  rmSync(folder, { recursive: true })
  const startTlsWorker = () =>
    startWorker(createTlsServer({ key, cert, ALPNProtocols: ['http/1.1'] }), 'secureConnection')

  test('requests use TLS with ALPN, on kept connections, with pauses', async () => {
    const worker = await startTlsWorker()
    const transport = openTransport({ tls: { ca: cert } })
    const url = `https://localhost:${worker.port}`
    for (let turn = 0; turn < 2; turn++) {
      const client = send(transport, entry(url))
      client.onChunk = () => {
        client.exchange?.pause()
        setImmediate(() => client.exchange?.resume())
      }
      const peer = await worker.peer(0)
      expect(await peer.request()).toContain(`host: localhost:${worker.port}\r\n`)
      const { alpnProtocol, servername } = peer.socket as unknown as Record<string, unknown>
      expect([alpnProtocol, servername]).toEqual(['http/1.1', 'localhost'])
      const body = randomBytes(500_000)
      peer.socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`)
      peer.socket.write(body)
      await client.done
      expect(client.body).toBe(body.toString('latin1'))
    }
    expect(worker.peers).toHaveLength(1)
  })

  test('an untrusted certificate fails as connect', async () => {
    const worker = await startTlsWorker()
    const client = await send(openTransport(), entry(`https://127.0.0.1:${worker.port}`)).done
    expect(client.failure).toMatchObject({ kind: 'connect', responseStarted: false })
  })
})
