/** WebSocket routes over real sockets: who may open one, how a message runs, limits, and the end. */
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import {
  adminErrorFormat,
  apiErrorFormat,
  type Host,
  type MessageSocketDefinition,
  type Socket,
} from '#kernel'
import { messageSocket } from '#shared'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type HookedGateway, openHooked, plugin } from '../support/hooked-gateway.ts'
import { sseAnswer } from '../support/scripted-worker.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Peer {
  readonly ws: WebSocket
  /** Text as received, bytes as buffers. */
  readonly messages: (string | Buffer)[]
  readonly closed: Promise<{ code: number; reason: string }>
  send(message: string | Buffer): void
  /** Resolves once that many messages have arrived in total. */
  receive(count: number): Promise<(string | Buffer)[]>
}

/** @throws with the status if the upgrade is rejected */
async function connect(
  url: string,
  path: string,
  options: { headers?: Record<string, string>; protocols?: string[]; origin?: string } = {},
): Promise<Peer> {
  const { protocols = [], ...rest } = options
  const ws = new WebSocket(url.replace('http', 'ws') + path, protocols, rest)
  closers.push(() => ws.terminate())
  const messages: (string | Buffer)[] = []
  ws.on('message', (data: Buffer, isBinary) => messages.push(isBinary ? data : data.toString()))
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    ws.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  )
  await new Promise<void>((resolve, reject) => {
    ws.once('open', resolve)
    ws.once('unexpected-response', (_request, response) => {
      let body = ''
      response.on('data', (part) => {
        body += part
      })
      response.on('end', () => reject(new Error(`${response.statusCode} ${body}`)))
    })
    ws.once('error', reject)
  })
  return {
    ws,
    messages,
    closed,
    send: (message) => ws.send(message),
    receive: async (count) => {
      await expect.poll(() => messages.length).toBeGreaterThanOrEqual(count)
      return messages
    },
  }
}

const echo: MessageSocketDefinition = {
  path: '/echo/:room',
  access: 'public',
  errors: apiErrorFormat,
  onMessage: (ctx) =>
    ctx.json(200, { text: ctx.bodyBytes.toString(), room: ctx.param('room'), id: ctx.requestId }),
}

async function gatewayWith(
  definition: MessageSocketDefinition,
  options: { plugins?: object; kernel?: Record<string, unknown>; more?: (host: Host) => void } = {},
): Promise<TestGateway> {
  const own = plugin('socketed', (host) => {
    host.socket(messageSocket(definition))
    options.more?.(host)
  })
  const gateway = await startGateway({
    own: [own],
    plugins: { auth: {}, ...options.plugins },
    kernel: options.kernel,
  })
  closers.push(() => gateway.stop())
  return gateway
}

async function hookedWith(register: (host: Host) => void, options = {}): Promise<HookedGateway> {
  const hooked = await openHooked(register, options)
  closers.push(() => hooked.close())
  return hooked
}

const docs = { summary: 'of a test', tag: 'test', responses: {} }

describe('a message', () => {
  test('is a request with its own id and the parameters of the socket', async () => {
    const gateway = await gatewayWith(echo)
    const peer = await connect(gateway.url, '/echo/a%20b')
    peer.send('one')
    await peer.receive(1)
    peer.send('two')
    const replies = (await peer.receive(2)).map((text) => JSON.parse(String(text)))
    expect(replies.map(({ text, room }) => [text, room])).toEqual([
      ['one', 'a b'],
      ['two', 'a b'],
    ])
    expect(replies[0].id).not.toBe(replies[1].id)
  })

  test('is counted by its own label; the upgrade counts as 101', async () => {
    const gateway = await gatewayWith(echo)
    const peer = await connect(gateway.url, '/echo/a')
    for (const word of ['one', 'two']) peer.send(word)
    await peer.receive(2)
    const metrics = await (await fetch(gateway.metricsUrl as string)).text()
    expect(metrics).toContain('weir_http_requests_total{method="MESSAGE",path="/echo/:room"} 2')
    expect(metrics).toContain('weir_http_requests_total{method="GET",path="/echo/:room"} 1')
    expect(metrics).toMatch(
      /weir_http_responses_total\{path="\/echo\/:room",status_code="101",error_code=""\} 1/,
    )
    expect(metrics).toContain('weir_sockets_open 1')
    expect(metrics).toContain('weir_http_connections_active 0')
  })

  test('runs the hooks once each, and one may respond; the upgrade runs onDone only', async () => {
    const seen: string[] = []
    const gateway = await gatewayWith(echo, {
      more: (host) => {
        host.hook('onRequest', (ctx) => {
          seen.push(`request ${ctx.bodyBytes}`)
          return ctx.bodyBytes.toString() === 'stop' ? { status: 429, body: 'stopped' } : undefined
        })
        host.hook('onDone', (ctx) => void seen.push(`done ${ctx.status}`))
      },
    })
    const peer = await connect(gateway.url, '/echo/a')
    peer.send('stop')
    await peer.receive(1)
    peer.send('go')
    expect((await peer.receive(2))[0]).toBe('stopped')
    expect(seen).toEqual(['done 101', 'request stop', 'done 429', 'request go', 'done 200'])
  })

  test('that fails gets an error in the format of the route, and the next one runs', async () => {
    const gateway = await gatewayWith({
      ...echo,
      onMessage: async (ctx, { socket }) => {
        if (ctx.bodyBytes.toString() === 'bad') throw new Error('secret detail')
        ctx.send(204, null, '')
        socket.send(Buffer.from([1, 2, 3]))
      },
    })
    const peer = await connect(gateway.url, '/echo/a')
    peer.send('bad')
    await peer.receive(1)
    peer.send(Buffer.from('good'))
    const [failure, bytes] = await peer.receive(2)
    expect(JSON.parse(String(failure))).toEqual({
      error: { message: 'internal error', type: 'internal_error', code: 'internal_error' },
    })
    expect(bytes).toEqual(Buffer.from([1, 2, 3]))
  })

  test('may start a stream of a worker: each event is a text message, heartbeats are not sent', async () => {
    const hooked = await hookedWith(
      (host) =>
        host.socket(
          messageSocket({
            ...echo,
            onMessage: (ctx) => host.upstream.relay(ctx, { model: null, stream: true, path: '/echo' }),
          }),
        ),
      { answer: sseAnswer(['{"a":1}', '{"b":2}', '[DONE]']), kernel: { http: { heartbeatMs: 20 } } },
    )
    const peer = await connect(hooked.gateway.url, '/echo/a', { headers: { 'x-correlation-id': 'mine' } })
    peer.send('{"model":"m"}')
    expect(await peer.receive(3)).toEqual(['{"a":1}', '{"b":2}', '[DONE]'])
    expect(hooked.worker.requestsTo('POST /echo')[0].body.toString()).toBe('{"model":"m"}')
    expect(await hooked.inFlight()).toBe(0)
  })

  test('is cancelled, with its worker request, when the client disconnects', async () => {
    const never = new Promise<void>(() => {})
    const hooked = await hookedWith(
      (host) =>
        host.socket(
          messageSocket({
            ...echo,
            onMessage: (ctx) => host.upstream.relay(ctx, { model: null, stream: true, path: '/echo' }),
          }),
        ),
      { answer: sseAnswer(['one', { until: never }, 'two']) },
    )
    const peer = await connect(hooked.gateway.url, '/echo/a')
    peer.send('{}')
    await peer.receive(1)
    peer.ws.terminate()
    const [request] = hooked.worker.requestsTo('POST /echo')
    await request.closed
    expect(request.isAborted).toBe(true)
    expect(await hooked.inFlight()).toBe(0)
  })
})

describe('the upgrade', () => {
  test('checks the key first, and the identity applies to every message', async () => {
    const guarded: MessageSocketDefinition = {
      ...echo,
      access: 'api',
      onMessage: (ctx) => ctx.json(200, ctx.identity),
    }
    const gateway = await gatewayWith(guarded, { plugins: { auth: { apiKey: 'right' } } })
    await expect(connect(gateway.url, '/echo/a')).rejects.toThrow('401 {"error"')
    await expect(
      connect(gateway.url, '/echo/a', { headers: { authorization: 'Bearer wrong' } }),
    ).rejects.toThrow('401')
    const peer = await connect(gateway.url, '/echo/a', { headers: { authorization: 'Bearer right' } })
    peer.send('who')
    expect(JSON.parse(String((await peer.receive(1))[0]))).toMatchObject({ tenant: 'auth:shared' })
  })

  test('is rejected for pages of other origins, for any foreign origin on admin routes, and never without an Origin', async () => {
    const listed = { http: { corsOrigins: ['https://app.example'] } }
    const gateway = await gatewayWith(echo, { kernel: listed })
    const open = (origin?: string) => connect(gateway.url, '/echo/a', { origin })
    await expect(open('https://evil.example')).rejects.toThrow('403')
    for (const origin of [undefined, 'https://app.example', gateway.url]) await open(origin)

    const admin = await gatewayWith({ ...echo, access: 'admin', errors: adminErrorFormat })
    await expect(connect(admin.url, '/echo/a', { origin: 'https://any.example' })).rejects.toThrow('403')
    await connect(admin.url, '/echo/a', { origin: admin.url })
    await connect(admin.url, '/echo/a')
  })

  test('selects the subprotocol that the route prefers', async () => {
    const gateway = await gatewayWith({ ...echo, protocols: ['v2', 'v1'] })
    const protocolOf = async (protocols: string[]) =>
      (await connect(gateway.url, '/echo/a', { protocols })).ws.protocol
    expect(await protocolOf(['v1', 'v2'])).toBe('v2')
    expect(await protocolOf(['v1'])).toBe('v1')
    expect((await connect(gateway.url, '/echo/a')).ws.protocol).toBe('')
  })

  test('does not affect other routes of the path, and a plain request of the path is 405', async () => {
    const gateway = await gatewayWith(echo, {
      more: (host) =>
        host.route({
          method: 'POST',
          path: '/echo/:room',
          access: 'public',
          errors: apiErrorFormat,
          docs,
          handler: (ctx) => ctx.text(200, `posted to ${ctx.param('room')}`),
        }),
    })
    await connect(gateway.url, '/echo/a')
    expect(await (await fetch(`${gateway.url}/echo/a`, { method: 'POST' })).text()).toBe('posted to a')
    expect((await fetch(`${gateway.url}/echo/a`)).status).toBe(405)
  })
})

describe('limits', () => {
  const slow = (limits: object, gate: Promise<unknown>): MessageSocketDefinition => ({
    ...echo,
    limits,
    onMessage: async (ctx) => {
      await gate
      ctx.text(200, ctx.bodyBytes.toString())
    },
  })

  test('a message that is too large closes the socket with 1009', async () => {
    const gateway = await gatewayWith({ ...echo, limits: { maxMessageBytes: 100 } })
    const peer = await connect(gateway.url, '/echo/a')
    peer.send('x'.repeat(100))
    await peer.receive(1)
    peer.send('x'.repeat(101))
    expect((await peer.closed).code).toBe(1009)
    const hard = await connect(gateway.url, '/echo/a')
    hard.send('x'.repeat(100_000))
    expect([1006, 1009]).toContain((await hard.closed).code)
  })

  test('sockets beyond the limit are rejected until one closes', async () => {
    const gateway = await gatewayWith({ ...echo, limits: { maxOpen: 2 } })
    const [first] = [await connect(gateway.url, '/echo/a'), await connect(gateway.url, '/echo/a')]
    await expect(connect(gateway.url, '/echo/a')).rejects.toThrow('503')
    first.ws.close()
    await first.closed
    await connect(gateway.url, '/echo/a')
  })

  test('a tenant is limited to its share of sockets, and others still get theirs', async () => {
    const shared: MessageSocketDefinition = { ...echo, access: 'api', limits: { maxPerTenant: 2 } }
    const gateway = await gatewayWith(shared, { plugins: { auth: { tenantKeys: ['a:key-a', 'b:key-b'] } } })
    const as = (key: string) =>
      connect(gateway.url, '/echo/a', { headers: { authorization: `Bearer ${key}` } })
    const [first] = [await as('key-a'), await as('key-a')]
    await expect(as('key-a')).rejects.toThrow(/^429 .*"too_many_sockets".*/)
    await as('key-b')
    first.ws.close()
    await first.closed
    await as('key-a')
  })

  test('clients without a key share the sockets of the route', async () => {
    const gateway = await gatewayWith({ ...echo, limits: { maxPerTenant: 1, maxOpen: 2 } })
    for (const _ of [1, 2]) await connect(gateway.url, '/echo/a')
    await expect(connect(gateway.url, '/echo/a')).rejects.toThrow('503')
  })

  test('an idle socket closes with 1000, a busy one does not', async () => {
    const gate = Promise.withResolvers<void>()
    const gateway = await gatewayWith(slow({ idleMs: 500 }, gate.promise))
    const [busy, idle] = [await connect(gateway.url, '/echo/a'), await connect(gateway.url, '/echo/a')]
    const startedAtMs = performance.now()
    // A ping and a half of a message are no sign of use.
    const pings = setInterval(() => idle.ws.ping(), 50)
    closers.push(() => clearInterval(pings))
    idle.ws.send('half', { fin: false })
    busy.send('work')
    expect((await idle.closed).code).toBe(1000)
    await expect.poll(() => performance.now() - startedAtMs).toBeGreaterThan(1_000)
    gate.resolve()
    expect(await busy.receive(1)).toEqual(['work'])
    expect((await busy.closed).code).toBe(1000)
  })

  test('messages run one after another, some may wait, and more close the socket with 1008', async () => {
    const gate = Promise.withResolvers<void>()
    const gateway = await gatewayWith(slow({ maxWaiting: 2 }, gate.promise))
    const [within, beyond] = [await connect(gateway.url, '/echo/a'), await connect(gateway.url, '/echo/a')]
    for (const word of ['1', '2', '3']) within.send(word)
    for (const word of ['1', '2', '3', '4']) beyond.send(word)
    expect((await beyond.closed).code).toBe(1008)
    gate.resolve()
    expect(await within.receive(3)).toEqual(['1', '2', '3'])
  })

  test('waiting messages of a socket are limited to the size of one message in total', async () => {
    const gate = Promise.withResolvers<void>()
    const gateway = await gatewayWith(slow({ maxMessageBytes: 100 }, gate.promise))
    const [within, beyond] = [await connect(gateway.url, '/echo/a'), await connect(gateway.url, '/echo/a')]
    for (const bytes of [100, 50, 50]) within.send('x'.repeat(bytes))
    for (const bytes of [100, 50, 51]) beyond.send('x'.repeat(bytes))
    expect((await beyond.closed).code).toBe(1008)
    gate.resolve()
    expect(await within.receive(3)).toHaveLength(3)
    within.send('x'.repeat(100))
    expect(await within.receive(4)).toHaveLength(4)
  })

  test('a stream of a message may be silent for longer than the idle check interval', async () => {
    const gateway = await gatewayWith({
      ...echo,
      onMessage: (ctx) => {
        const stream = ctx.sse()
        stream.write('data: first\n\n')
        setTimeout(() => stream.end('data: last\n\n'), 4_000)
      },
    })
    const peer = await connect(gateway.url, '/echo/a')
    peer.send('go')
    expect((await peer.receive(2)).map(String)).toEqual(['first', 'last'])
  })

  test('a client that does not read pauses the writer, then is disconnected beyond the buffer limit', async () => {
    const chunk = 'x'.repeat(200_000)
    const states: boolean[] = []
    const gateway = await gatewayWith({
      ...echo,
      limits: { maxBufferedBytes: 8_000_000 },
      onMessage: (ctx) => {
        const stream = ctx.sse()
        let left = 200
        const write = () => {
          while (left > 0) {
            left -= 1
            const isWritable = stream.write(`data: ${left} ${chunk}\n\n`)
            states.push(isWritable)
            if (!isWritable) return ctx.flow.whenReleased(write)
          }
          stream.end()
        }
        write()
      },
    })
    const peer = await connect(gateway.url, '/echo/a')
    peer.ws.pause()
    peer.send('go')
    await expect.poll(() => states.includes(false)).toBe(true)
    peer.ws.resume()
    const messages = await peer.receive(200)
    expect(messages.map((text) => Number(String(text).split(' ')[0]))).toEqual(
      Array.from({ length: 200 }, (_, place) => 199 - place),
    )

    const flooded = await gatewayWith({
      ...echo,
      limits: { maxBufferedBytes: 1_000_000 },
      onMessage: (ctx, { socket }) => {
        for (let sent = 0; sent < 200 && socket.isOpen; sent += 1) socket.send(chunk)
        ctx.send(204, null, '')
      },
    })
    const deaf = await connect(flooded.url, '/echo/a')
    deaf.ws.pause()
    deaf.send('go')
    await expect
      .poll(async () => (await fetch(flooded.metricsUrl as string)).text())
      .toContain('weir_sockets_open 0')
  })
})

describe('shutdown and plugins', () => {
  test('running work may finish, its socket closes with 1001 after it, idle ones at once', async () => {
    const gate = Promise.withResolvers<void>()
    const began = Promise.withResolvers<void>()
    const gateway = await gatewayWith(
      {
        ...echo,
        onMessage: async (ctx) => {
          began.resolve()
          await gate.promise
          ctx.text(200, 'done')
        },
      },
      { kernel: { shutdown: { graceMs: 5_000 } } },
    )
    const [busy, idle] = [await connect(gateway.url, '/echo/a'), await connect(gateway.url, '/echo/a')]
    busy.send('work')
    await began.promise
    const stopped = gateway.stop()
    expect((await idle.closed).code).toBe(1001)
    busy.send('too late')
    gate.resolve()
    expect((await busy.closed).code).toBe(1001)
    expect(busy.messages).toEqual(['done'])
    await stopped
  })

  test('a plugin is notified of opening and closing, keeps state per socket and may close; its exceptions are contained', async () => {
    const events: unknown[] = []
    const turns = new WeakMap<Socket, number>()
    const gateway = await gatewayWith({
      ...echo,
      onOpen: (socket) => {
        events.push(['open', socket.request.param('room'), socket.request.clientAddress])
        throw new Error('careless')
      },
      onClose: (_socket, code) => void events.push(['close', code]),
      onMessage: (_ctx, { socket }) => {
        turns.set(socket, (turns.get(socket) ?? 0) + 1)
        if (turns.get(socket) === 2) socket.close(4000, 'enough')
      },
      limits: { maxRunning: 2 },
    })
    const peer = await connect(gateway.url, '/echo/a')
    peer.send('one')
    peer.send('two')
    expect(await peer.closed).toEqual({ code: 4000, reason: 'enough' })
    expect(events).toEqual([
      ['open', 'a', '127.0.0.1'],
      ['close', 4000],
    ])
  })
})

test('the rest of a path is one parameter of a star, and a hidden route is in no document', async () => {
  const gateway = await gatewayWith(echo, {
    plugins: { openapi: {} },
    more: (host) => {
      host.route({
        method: 'GET',
        path: '/console/*',
        access: 'public',
        errors: apiErrorFormat,
        docs: { ...docs, isHidden: true },
        handler: (ctx) => ctx.text(200, ctx.param('*')),
      })
      host.route({
        method: 'GET',
        path: '/v/:version/files/*',
        access: 'public',
        errors: apiErrorFormat,
        docs,
        handler: (ctx) => ctx.text(200, `${ctx.param('version')}|${ctx.param('*')}`),
      })
    },
  })
  const get = async (path: string) => await (await fetch(gateway.url + path)).text()
  expect(await get('/console/assets/app.js?v=1')).toBe('assets/app.js')
  expect(await get('/console/a%20b')).toBe('a b')
  expect(await get('/console/')).toBe('')
  expect(await get('/v/2/files/x/y')).toBe('2|x/y')
  expect((await fetch(`${gateway.url}/console/x`, { method: 'POST' })).status).toBe(405)
  expect((await fetch(`${gateway.url}/consoles/x`)).status).toBe(404)
  const document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as { paths: object }
  expect(Object.keys(document.paths).some((path) => path.includes('console'))).toBe(false)
})

test('invalid paths prevent the start', async () => {
  const boot = (...paths: string[]) =>
    startGateway({
      own: [
        plugin('a', (host) => {
          for (const path of paths) host.socket(messageSocket({ ...echo, path }))
        }),
      ],
      plugins: { auth: {} },
    })
  await expect(boot('/a/*/b')).rejects.toThrow('a star must be the last segment')
  await expect(boot('/a/:b', '/a/:c')).rejects.toThrow(
    'plugin a declares the socket route /a/:c, which plugin a declares too',
  )
})
