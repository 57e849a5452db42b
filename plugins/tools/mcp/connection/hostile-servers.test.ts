/** Servers that hang, flood, send invalid data, crash or redirect: each call ends within its limit and releases everything. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { OutgoingHttp } from '#kernel'
import { ANYWHERE, type ReachRules } from '#shared'
import {
  flood,
  type RawServer,
  sendError,
  sendResult,
  startRawServer,
} from '../../../../test/support/mcp/raw-server.ts'
import { testConfig, testLog } from '../../../../test/support/mcp/run-turn.ts'
import { startToolServer } from '../../../../test/support/mcp/tool-server.ts'
import { outgoingHttp } from '../../../../test/support/outgoing-http.ts'
import { ServerConnection } from './server-connection.ts'
import type { ConnectionLimits, ServerTarget } from './server-target.ts'
import type { ToolServerError } from './tool-server-error.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

/** With the gateway's own client, and without one. */
const ways: readonly (readonly [string, OutgoingHttp | null])[] = [
  ['the own client', outgoingHttp],
  ['plain fetch', null],
]
let http: OutgoingHttp | null = null

const limits: ConnectionLimits = { ...testConfig().limits, connectMs: 20_000, callMs: 20_000 }

async function serve(...args: Parameters<typeof startRawServer>): Promise<RawServer> {
  const server = await startRawServer(...args)
  ends.push(() => server.close())
  return server
}

function target(url: string, more: { rules?: ReachRules; protocol?: 'sse' } = {}): ServerTarget {
  return { kind: 'http', url: new URL(url), protocol: 'auto', headers: new Map(), rules: ANYWHERE, ...more }
}

async function connect(to: ServerTarget, some: Partial<ConnectionLimits> = {}): Promise<ServerConnection> {
  const connection = await ServerConnection.open(to, { ...limits, ...some }, testLog(), http)
  ends.unshift(() => connection.close())
  return connection
}

const call = (connection: ServerConnection, timeoutMs = 5_000, signal = new AbortController().signal) =>
  connection.call('t', {}, { signal, timeoutMs })

const failure = (work: Promise<unknown>): Promise<ToolServerError> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error) => error,
  )

const events = { 'content-type': 'text/event-stream' }

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

describe.each(ways)('over %s', (_name, client) => {
  beforeEach(() => {
    http = client
  })

  test('a server that does not respond to the handshake times out', async () => {
    const server = await startToolServer({}, { intercept: () => true })
    ends.push(() => server.close())
    const error = await failure(connect(target(server.url), { connectMs: 100 }))
    expect(error).toMatchObject({
      type: 'http_error',
      message: expect.stringMatching(/in time|within 100 ms/),
    })
  })

  test('a call that hangs times out, its stream is closed, the connection continues', async () => {
    const closed = Promise.withResolvers<void>()
    let isFirst = true
    const server = await serve((message, response) => {
      if (!isFirst) return sendResult(response, message, { content: [{ type: 'text', text: 'ok' }] })
      isFirst = false
      response.writeHead(200, events).write(': hello\n\n')
      response.on('close', () => closed.resolve())
    })
    const connection = await connect(target(server.url))
    expect(await failure(call(connection, 100))).toMatchObject({ message: 'no response in time' })
    await closed.promise
    expect((await call(connection)).text).toBe('ok')
    expect(server.received).toContain('notifications/cancelled')
  })

  const shapes = {
    'one JSON text': ['application/json', Buffer.alloc(65_536, '"aaaa')],
    'one event': ['text/event-stream', Buffer.concat([Buffer.from('data: '), Buffer.alloc(65_536, 'a')])],
    'many events': [
      'text/event-stream',
      Buffer.from('data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'.repeat(1_000)),
    ],
  } as const

  test.each(Object.entries(shapes))(
    'a flood of 1 GB as %s ends at the limit and takes no memory',
    async (_, [type, piece]) => {
      const server = await serve((_message, response) => {
        response.writeHead(200, { 'content-type': type })
        flood(response, piece)
      })
      // The server's buffers are in the same process, which leaves less memory for the test.
      const maxMessageBytes = 2 * 1_048_576
      const connection = await connect(target(server.url), { maxMessageBytes })
      const before = process.memoryUsage()
      let most = 0
      const watch = setInterval(() => {
        const now = process.memoryUsage()
        most = Math.max(most, now.external + now.arrayBuffers - before.external - before.arrayBuffers)
      }, 5)
      const error = await failure(call(connection, 20_000))
      clearInterval(watch)
      expect(error).toMatchObject({
        type: 'http_error',
        message: `the server sent more than ${maxMessageBytes} bytes`,
      })
      expect(most).toBeLessThan(20 * 1_048_576)
      await expect.poll(() => connection.isClosed).toBe(true)
    },
    30_000,
  )

  test("a flood on the server's own stream closes the connection", async () => {
    const server = await serve((message, response, _request) => {
      if (message.method !== 'GET') return
      response.writeHead(200, events)
      flood(response, Buffer.from('data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'.repeat(1_000)))
    })
    const connection = await connect(target(server.url))
    await expect.poll(() => connection.isClosed, { timeout: 30_000 }).toBe(true)
  }, 180_000)

  test('a server that sends endless requests is disconnected', async () => {
    const ask = (id: number) => `data: {"jsonrpc":"2.0","id":${id},"method":"ping"}\n\n`
    let isAnswering = true
    const server = await startToolServer(
      {},
      {
        intercept: (request, response) => {
          if (request.method === 'GET') {
            response.writeHead(200, events)
            isAnswering = false
            let id = 0
            flood(response, Buffer.from(ask(++id).repeat(100)), 1_000_000)
            return true
          }
          return !isAnswering
        },
      },
    )
    ends.push(() => server.close())
    const connection = await connect(target(server.url))
    await expect.poll(() => connection.isClosed, { timeout: 30_000 }).toBe(true)
  }, 180_000)

  test.each([
    ['in the middle of an event', 'data: {"jsonrpc":"2.0","id":'],
    ['before any event', ': hello\n\n'],
  ])('a server that dies %s fails the call at once', async (_, text) => {
    const server = await serve((_message, response) => {
      response.writeHead(200, events).write(text)
      setTimeout(() => response.socket?.destroy(), 20)
    })
    const startedMs = Date.now()
    const error = await failure(call(await connect(target(server.url)), 20_000))
    expect(error).toMatchObject({ type: 'http_error', message: 'the server closed the connection' })
    expect(Date.now() - startedMs).toBeLessThan(5_000)
  })

  test('a server that ends its stream without a response fails the call at once', async () => {
    const server = await serve((_message, response) => void response.writeHead(200, events).end(': bye\n\n'))
    const error = await failure(call(await connect(target(server.url)), 20_000))
    expect(error.message).toBe('the server closed the connection')
  })

  test('redirects to other hosts are not followed; those within one are checked again', async () => {
    const inner = await startToolServer({ t: () => 'inner' })
    ends.push(() => inner.close())
    const server = await serve(
      (_message, response) => void response.writeHead(307, { location: inner.url }).end(),
    )
    const error = await failure(call(await connect(target(server.url))))
    expect(error).toMatchObject({ type: 'http_error', code: 307, message: 'the server answered 307' })
    expect(inner.sessions).toBe(0)
  })

  test('a name that resolves to a private address is not connected to', async () => {
    const server = await startToolServer({})
    ends.push(() => server.close())
    const port = new URL(server.url).port
    const rules = { ...ANYWHERE, allowsPrivate: false }
    const error = await failure(connect(target(`http://localhost:${port}/mcp`, { rules })))
    expect(error).toMatchObject({ type: 'http_error', message: 'its address is private' })
  })

  test('invalid tools of a server have a reason, valid ones are kept', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(110)}1${'}'.repeat(110)}`)
    const tools = [
      {
        name: 'good',
        inputSchema: { type: 'object', properties: { a: { type: 'string' } } },
        annotations: 'x',
      },
      { name: 'array', inputSchema: [] },
      { name: 'text', inputSchema: { type: 'string' } },
      { name: 'none' },
      { name: 'big', inputSchema: { type: 'object', description: 'x'.repeat(100_000) } },
      { name: 'props', inputSchema: { type: 'object', properties: 7 } },
      { name: 'deep', inputSchema: { type: 'object', properties: { a: deep } } },
      { name: 'good', description: 'twice' },
      { name: 'talks', description: 'y'.repeat(100_000) },
      { name: 5 },
      { name: '' },
      { name: 'x'.repeat(1_000) },
      null,
      'tool',
    ]
    const server = await serve((message, response) => sendResult(response, message, { tools, nextCursor: 7 }))
    const connection = await connect(target(server.url))
    const [good, none, talks, ...others] = await connection.tools()
    expect(good).toMatchObject({
      name: 'good',
      inputSchema: { properties: { a: { type: 'string' } } },
      annotations: null,
    })
    expect(none).toMatchObject({ name: 'none', inputSchema: { type: 'object', properties: {} } })
    expect(talks.description).toHaveLength(8_192)
    expect(others).toEqual([])
    const unusable = await connection.unusableTools()
    expect(unusable.map(({ name }) => name.slice(0, 10))).toEqual([
      ...['array', 'text', 'big', 'props', 'deep', 'good'],
      ...['unknown', 'unknown', 'xxxxxxxxxx', 'unknown', 'unknown'],
    ])
    for (const { reason } of unusable) expect(reason).not.toBe('')
  })

  test('an endless list is truncated, and so is one with a constant cursor', async () => {
    let page = 0
    const endless = await serve((message, response) => {
      const tools = Array.from({ length: 50 }, (_, i) => ({ name: `t${page}_${i}` }))
      sendResult(response, message, { tools, nextCursor: String(++page) })
    })
    expect(await (await connect(target(endless.url))).tools()).toHaveLength(512)
    const inputSchema = { type: 'object', description: 'x'.repeat(60_000) }
    const large = await serve((message, response) => {
      const tools = Array.from({ length: 50 }, (_, i) => ({ name: `l${page}_${i}`, inputSchema }))
      sendResult(response, message, { tools, nextCursor: String(++page) })
    })
    expect((await (await connect(target(large.url))).tools()).length).toBeLessThan(71)
    const still = await serve((message, response) =>
      sendResult(response, message, { tools: [{ name: 'a' }], nextCursor: 'x' }),
    )
    expect(await (await connect(target(still.url))).tools()).toHaveLength(1)
    expect(still.received.filter((method) => method === 'tools/list')).toHaveLength(2)
  })

  test.each([
    ['a text', '"x"'],
    ['null', 'null'],
    ['no content', '{"content":5}'],
    ['nested too deeply', `{"content":[${'['.repeat(5_000)}${']'.repeat(5_000)}]}`],
  ])('a result that is %s is a protocol or transport error', async (_, result) => {
    const server = await serve((message, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(`{"jsonrpc":"2.0","id":${message.id},"result":${result}}`)
    })
    const error = await failure(call(await connect(target(server.url))))
    expect(error.type).toMatch(/mcp_protocol_error|http_error/)
  })

  test('ids and progress tokens that are objects belong to no request', async () => {
    const unprintable = '{"toString":1,"valueOf":1}'
    const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${unprintable}}}`
    let isFirst = true
    const server = await serve((message, response) => {
      const content = '{"content":[{"type":"text","text":"ok"}]}'
      const own = `{"jsonrpc":"2.0","id":${message.id},"result":${content}}`
      const foreign = `{"jsonrpc":"2.0","id":${unprintable},"result":${content}}`
      if (isFirst)
        response.writeHead(200, events).end(`data: ${progress}\n\ndata: ${foreign}\n\ndata: ${own}\n\n`)
      else response.writeHead(200, { 'content-type': 'application/json' }).end(foreign)
      isFirst = false
    })
    const connection = await connect(target(server.url))
    expect((await call(connection)).text).toBe('ok')
    expect((await failure(call(connection))).type).toMatch(/mcp_protocol_error|http_error/)
  })

  test.each([
    ['a batch', () => `[${'{"jsonrpc":"2.0","method":"notifications/x"},'.repeat(50_000)}{}]`],
    ['nested deeply', (id: number) => `{"jsonrpc":"2.0","id":${id},"result":${nested(100_000)}}`],
    ['of many objects', (id: number) => `{"jsonrpc":"2.0","id":${id},"result":[${'{},'.repeat(200_000)}0]}`],
  ])('a response that is %s is not read as a message', async (_, bodyFor) => {
    const server = await serve((message, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(bodyFor(message.id ?? 0)),
    )
    const error = await failure(call(await connect(target(server.url))))
    expect(error).toMatchObject({
      type: 'http_error',
      message: 'the response is not a message of the protocol',
    })
  })

  test('events that are not messages are skipped', async () => {
    const server = await serve((message, response) => {
      const result = { content: [{ type: 'text', text: 'ok' }] }
      const bad = ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', nested(10_000), '5', 'null', '{"a":']
      response.writeHead(200, events)
      for (const data of bad) response.write(`data: ${data}\n\n`)
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result })}\n\n`)
    })
    expect((await call(await connect(target(server.url)))).text).toBe('ok')
    expect(server.received).not.toContain('answer')
  })

  test('a server that sends many requests at once gets few responses, and is disconnected', async () => {
    const server = await serve((_message, response) => {
      response.writeHead(200, events)
      response.write(Buffer.from('data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n'.repeat(1_000)))
    })
    const connection = await connect(target(server.url))
    expect((await failure(call(connection, 20_000))).type).toBe('http_error')
    await expect.poll(() => connection.isClosed).toBe(true)
    expect(server.received.filter((method) => method === 'answer').length).toBeLessThanOrEqual(16)
  })

  test('a header of the server with any characters does no harm', async () => {
    const server = await serve((_message, response) => {
      response.socket?.write('HTTP/1.1 400 Bad Request\r\nx-name: \u65e5\u00e9\r\ncontent-length: 0\r\n\r\n')
    })
    const error = await failure(call(await connect(target(server.url))))
    expect(error).toMatchObject({ type: 'http_error', code: 400, message: 'the server answered 400' })
  })

  test('texts of errors have no control characters', async () => {
    const server = await serve((message, response) =>
      sendError(response, message, -32_000, 'wrong\u0000\u001b[31m\r\nline\u009b', 200),
    )
    const error = await failure(call(await connect(target(server.url))))
    expect(error).toMatchObject({ code: -32_000, message: 'wrong [31m \nline ' })
  })

  test('text blocks are joined, others are compact JSON, a long output is truncated between characters', async () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'resource_link', uri: 'file:///x', name: 'x' },
      null,
      { type: 'text', text: 'ü'.repeat(100) },
    ]
    const server = await serve((message, response) => sendResult(response, message, { content }))
    const whole = await call(await connect(target(server.url)))
    expect(whole.text).toBe(`a\n[link to resource file:///x, x]\nnull\n${'ü'.repeat(100)}`)
    const cut = await call(await connect(target(server.url), { maxOutputBytes: 100 }))
    expect(cut.text).toMatch(/^a\n.*\nnull\nü+\n\[output cut off here\]$/)
  })

  test('a program that floods, dies or does not speak the protocol ends the same way', async () => {
    const program = (code: string): ServerTarget => ({
      kind: 'stdio',
      command: process.execPath,
      args: ['-e', code],
      env: {},
    })
    const speak = (then: string) =>
      `process.stdin.on('data', (d) => { for (const l of String(d).trim().split('\\n')) { const m = JSON.parse(l);
      if (m.method === 'initialize') console.log(JSON.stringify({ jsonrpc: '2.0', id: m.id, result:
        { protocolVersion: '2025-06-18', serverInfo: { name: 'p', version: '1' }, capabilities: { tools: {} } } }));
      else if (m.method === 'tools/call') { ${then} } } })`
    const dying = await connect(program(speak('process.exit(1)')), { connectMs: 10_000 })
    expect((await failure(call(dying, 10_000))).message).toBe('the server closed the connection')
    const flooding = await connect(program(speak("for (;;) require('fs').writeSync(1, 'x'.repeat(65536))")), {
      connectMs: 10_000,
    })
    expect((await failure(call(flooding, 20_000))).type).toBe('http_error')
    await expect.poll(() => flooding.isClosed).toBe(true)
    expect((await failure(connect(program('process.exit(3)'), { connectMs: 10_000 }))).type).toBe(
      'http_error',
    )
    const absent: ServerTarget = { kind: 'stdio', command: '/no/such/program', args: [], env: {} }
    expect((await failure(connect(absent))).message).toBe('cannot reach the server (ENOENT)')
  }, 180_000)

  test('closing a connection closes its sockets', async () => {
    const server = await serve((message, response, _request) => {
      if (message.method === 'GET') response.writeHead(200, events).write(': open\n\n')
      else sendResult(response, message, { content: [] })
    })
    const connection = await connect(target(server.url))
    await Promise.all(Array.from({ length: 20 }, () => call(connection)))
    expect(await server.connections()).toBeGreaterThan(0)
    await connection.close()
    await expect.poll(() => server.connections()).toBe(0)
  })

  test('a completed call is not cancelled when its turn is aborted; one that hangs is', async () => {
    let isHanging = false
    const closed = Promise.withResolvers<void>()
    const server = await serve((message, response) => {
      if (!isHanging) return sendResult(response, message, { content: [] })
      response.on('close', () => closed.resolve())
    })
    const connection = await connect(target(server.url))
    const turn = new AbortController()
    await call(connection, 5_000, turn.signal)
    await call(connection, 5_000, turn.signal)
    turn.abort()
    await call(connection)
    expect(server.received).not.toContain('notifications/cancelled')
    isHanging = true
    const second = new AbortController()
    setTimeout(() => second.abort(), 50)
    await failure(call(connection, 20_000, second.signal))
    await closed.promise
    expect(server.received.filter((method) => method === 'notifications/cancelled')).toHaveLength(1)
  })

  test('HTTP+SSE transport: a server that dies during a call fails it at once, and is not used again', async () => {
    let stream: import('node:http').ServerResponse | null = null
    const say = (text: string) => stream?.write(`event: message\ndata: ${text}\n\n`)
    const server = await startToolServer(
      {},
      {
        intercept: (request, response) => {
          if (request.method === 'GET') {
            stream = response.writeHead(200, events)
            stream.write('event: endpoint\ndata: /messages\n\n')
            return true
          }
          if (request.url !== '/messages') {
            response.writeHead(405).end()
            return true
          }
          let text = ''
          request.on('data', (chunk) => {
            text += chunk
          })
          request.on('end', () => {
            response.writeHead(202).end()
            const { id, method } = JSON.parse(text)
            const result = {
              protocolVersion: '2024-11-05',
              serverInfo: { name: 's', version: '1' },
              capabilities: {},
            }
            if (method === 'initialize') say(JSON.stringify({ jsonrpc: '2.0', id, result }))
            if (method === 'tools/call') stream?.socket?.destroy()
          })
          return true
        },
      },
    )
    ends.push(() => server.close())
    const connection = await connect(target(server.url))
    expect(connection.transport).toBe('sse')
    const startedMs = Date.now()
    expect((await failure(call(connection, 20_000))).message).toBe('the server closed the connection')
    expect([connection.isClosed, Date.now() - startedMs < 5_000]).toEqual([true, true])
  })
})
