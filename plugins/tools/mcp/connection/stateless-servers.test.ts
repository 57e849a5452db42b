/** Servers of protocol 2026-07-28: no handshake, headers that repeat the body, lifetimes of lists, questions and tasks. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { inputRequired } from '@modelcontextprotocol/server'
import { afterEach, describe, expect, test } from 'vitest'
import { ANYWHERE } from '#shared'
import { DISCOVERED, sendError, sendResult, startRawServer } from '../../../../test/support/mcp/raw-server.ts'
import { testConfig, testLog } from '../../../../test/support/mcp/run-turn.ts'
import {
  type Run,
  type StatelessOptions,
  type StatelessTools,
  startStatelessServer,
} from '../../../../test/support/mcp/stateless-server.ts'
import { startToolServer } from '../../../../test/support/mcp/tool-server.ts'
import { outgoingHttp } from '../../../../test/support/outgoing-http.ts'
import { readTarget } from '../tools/configured-servers.ts'
import { ServerConnection } from './server-connection.ts'
import { ServerFacts } from './server-facts.ts'
import type { ConnectionLimits, ServerTarget } from './server-target.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function connect(
  url: string,
  some: {
    limits?: Partial<ConnectionLimits>
    facts?: ServerFacts
    handshake?: 'discover' | 'initialize'
    http?: null
  } = {},
): Promise<ServerConnection> {
  const target: ServerTarget = {
    kind: 'http',
    url: new URL(url),
    protocol: 'auto',
    handshake: some.handshake,
    headers: new Map(),
    rules: ANYWHERE,
  }
  const limits = { ...testConfig().limits, ...some.limits }
  const http = some.http === null ? null : outgoingHttp
  const connection = await ServerConnection.open(target, limits, testLog(), http, some.facts)
  ends.unshift(() => connection.close())
  return connection
}

async function serve(tools: StatelessTools, options: StatelessOptions = {}) {
  const server = await startStatelessServer(tools, options)
  ends.push(() => server.close())
  return server
}

async function serveRaw(...args: Parameters<typeof startRawServer>) {
  const server = await startRawServer(...args)
  ends.push(() => server.close())
  return server
}

const limit = (timeoutMs = 5_000) => ({ signal: new AbortController().signal, timeoutMs })
const texts = (text: string) => ({ content: [{ type: 'text', text }] })

describe.each([
  ['the own client', undefined],
  ['plain fetch', null],
] as const)('over %s', (_, http) => {
  test('a server without the older handshake is listed and called, one request each', async () => {
    const server = await serve({ echo: ({ text }) => `${text}!` })
    const connection = await connect(server.url, { http })
    expect((await connection.tools()).map(({ name }) => name)).toEqual(['echo'])
    expect((await connection.call('echo', { text: 'hi' }, limit())).text).toBe('hi!')
    expect(server.received.map(({ method }) => method)).toEqual([
      'server/discover',
      'tools/list',
      'tools/call',
    ])
    expect(connection).toMatchObject({
      protocolVersion: '2026-07-28',
      server: { name: 'test', version: '2' },
    })
  })

  test('parameters marked with x-mcp-header are sent as headers, which the server checks', async () => {
    const properties = {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      place: { type: 'object', properties: { floor: { type: 'integer', 'x-mcp-header': 'Floor' } } },
      isDry: { type: 'boolean', 'x-mcp-header': 'Dry' },
      absent: { type: 'string', 'x-mcp-header': 'Absent' },
    }
    const server = await serve({
      'späte suche': { inputSchema: { type: 'object', properties }, run: () => 'found' },
    })
    const connection = await connect(server.url, { http })
    await connection.tools()
    const input = { region: ' köln', place: { floor: 3 }, isDry: false, absent: null }
    expect((await connection.call('späte suche', input, limit())).text).toBe('found')
    expect(server.received.at(-1)?.headers).toMatchObject({
      'mcp-method': 'tools/call',
      'mcp-name': `=?base64?${Buffer.from('späte suche').toString('base64')}?=`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-param-region': `=?base64?${Buffer.from(' köln').toString('base64')}?=`,
      'mcp-param-floor': '3',
      'mcp-param-dry': 'false',
    })
    expect(server.received.at(-1)?.headers).not.toHaveProperty('mcp-param-absent')
  })

  test('progress keeps a call alive up to maxCallMs', async () => {
    const report: Run = async (_input, { mcpReq }) => {
      for (let progress = 1; progress <= 6; progress++) {
        await sleep(150)
        const progressToken = mcpReq._meta?.progressToken as number
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress } })
      }
      return 'done late'
    }
    const server = await serve({ report })
    const patient = await connect(server.url, { http })
    expect((await patient.call('report', {}, limit(500))).text).toBe('done late')
    const hasty = await connect(server.url, { http, limits: { maxCallMs: 300 } })
    await expect(hasty.call('report', {}, limit(250))).rejects.toMatchObject({
      message: 'no response in time',
    })
  })

  test('a cancelled call closes its stream, which is the notice to the server', async () => {
    const stopped = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    const server = await serve({
      hang: (_input, { mcpReq: { signal } }) => {
        signal.addEventListener('abort', () => stopped.resolve())
        started.resolve()
        return stopped.promise
      },
    })
    const connection = await connect(server.url, { http })
    const turn = new AbortController()
    const call = connection.call('hang', {}, { signal: turn.signal, timeoutMs: 20_000 })
    await started.promise
    turn.abort()
    await expect(call).rejects.toMatchObject({ message: 'cancelled' })
    await stopped.promise
    expect(server.count('notifications/cancelled')).toBe(0)
  })

  test('a server of another revision is recognized at the next request, which was not executed', async () => {
    const old = await startToolServer({ t: () => 'old' })
    const port = Number(new URL(old.url).port)
    const facts = new ServerFacts()
    const first = await connect(old.url, { http, facts })
    expect((await first.call('t', {}, limit())).text).toBe('old')
    await old.close()
    await serve({ t: () => 'new' }, { port })
    // The first call may meet a connection that the old server has closed.
    await expect
      .poll(() => first.call('t', {}, limit()).catch(({ isSessionLost }) => isSessionLost))
      .toBe(true)
    expect([first.isClosed, facts.handshake]).toEqual([true, undefined])
    expect((await (await connect(old.url, { http, facts })).call('t', {}, limit())).text).toBe('new')
  })
})

test('the handshake of a server is remembered for its next connection', async () => {
  const modern = await serve({ t: () => 'x' })
  const old = await startToolServer({ t: () => 'x' })
  ends.push(() => old.close())
  for (const { url } of [modern, old]) {
    const facts = new ServerFacts()
    await connect(url, { facts })
    const again = await connect(url, { facts })
    expect((await again.call('t', {}, limit())).text).toBe('x')
  }
  expect(modern.count('server/discover')).toBe(1)
})

test('a remembered handshake or public list is not used for a server of another revision', async () => {
  const facts = new ServerFacts()
  const names = async (url: string) => (await (await connect(url, { facts })).tools()).map(({ name }) => name)
  const first = await startToolServer({ first: () => 'x' })
  expect(await names(first.url)).toEqual(['first'])
  await first.close()
  const port = Number(new URL(first.url).port)
  const second = await startStatelessServer(
    { second: () => 'x' },
    { port, ttlMs: 60_000, cacheScope: 'public' },
  )
  expect(await names(first.url)).toEqual(['second'])
  const connection = await connect(first.url, { facts })
  await second.close()
  const third = await startToolServer({ third: () => 'x' }, { port })
  ends.push(() => third.close())
  await expect
    .poll(() => connection.call('second', {}, limit()).catch(({ isSessionLost }) => isSessionLost))
    .toBe(true)
  expect(await names(first.url)).toEqual(['third'])
})

test.each(['discover', 'initialize'] as const)(
  'a server that speaks both is used with the configured %s',
  async (handshake) => {
    const server = await serve({ t: () => 'x' }, { hasLegacy: true })
    const connection = await connect(server.url, { handshake })
    expect((await connection.call('t', {}, limit())).text).toBe('x')
    expect(server.received[0].method).toBe(handshake === 'discover' ? 'server/discover' : 'initialize')
    expect(connection.protocolVersion === '2026-07-28').toBe(handshake === 'discover')
  },
)

test('discover cannot be configured for the older transport', () => {
  const server = { label: 'a', url: 'http://127.0.0.1/sse', protocol: 'sse', handshake: 'discover' }
  const [config] = testConfig({ servers: [server] }).servers
  expect(() => readTarget(config, 'servers.0')).toThrow(/servers\.0\.handshake/)
})

test('an older server is rejected where only discover is configured', async () => {
  const old = await startToolServer({})
  ends.push(() => old.close())
  await expect(connect(old.url, { handshake: 'discover' })).rejects.toMatchObject({ type: 'http_error' })
})

test.each([
  ['responds with 500', (response: ServerResponse) => void response.writeHead(500).end('no such method')],
  [
    'responds without an id',
    (response: ServerResponse) => sendError(response, { id: null as never }, -32_700, '?', 200),
  ],
  [
    'responds with another id',
    (response: ServerResponse) => sendError(response, { id: 0 }, -32_601, '?', 200),
  ],
  ['responds with a page', (response: ServerResponse) => void response.end('<html>')],
  ['is silent', () => {}],
])('an older server that %s at an unknown method is used with its own handshake', async (_, answer) => {
  const intercept = (request: IncomingMessage, response: ServerResponse) => {
    const isUnknown = request.headers['mcp-method'] !== undefined
    if (isUnknown) request.resume().on('end', () => answer(response))
    return isUnknown
  }
  const old = await startToolServer({ t: () => 'x' }, { intercept })
  ends.push(() => old.close())
  const connection = await connect(old.url, { limits: { connectMs: 2_000 } })
  expect((await connection.call('t', {}, limit())).text).toBe('x')
})

test.each([
  ['ends', 'process.exit(1)'],
  ['is silent', ''],
])(
  'an older program that %s at an unknown method is started again with its own handshake',
  async (_, reaction) => {
    const code = `process.stdin.on('data', (d) => { for (const l of String(d).trim().split('\\n')) { const m = JSON.parse(l);
    const say = (result) => console.log(JSON.stringify({ jsonrpc: '2.0', id: m.id, result }));
    if (m.method === 'initialize') say({ protocolVersion: '2025-06-18', serverInfo: { name: 'p', version: '1' }, capabilities: { tools: {} } });
    else if (m.method === 'tools/call') say({ content: [{ type: 'text', text: 'ran' }] });
    else if (m.id !== undefined) { ${reaction} } } })`
    const target: ServerTarget = { kind: 'stdio', command: process.execPath, args: ['-e', code], env: {} }
    const connection = await ServerConnection.open(
      target,
      { ...testConfig().limits, connectMs: 5_000 },
      testLog(),
    )
    ends.push(() => connection.close())
    expect((await connection.call('t', {}, limit(20_000))).text).toBe('ran')
  },
  30_000,
)

test('a list is kept for its lifetime, and a public one is shared by all connections', async () => {
  const server = await serve({ t: () => 'x' }, { ttlMs: 60_000, cacheScope: 'public' })
  const facts = new ServerFacts()
  for (let i = 0; i < 2; i++) {
    const connection = await connect(server.url, { facts })
    await connection.tools()
    await connection.tools()
  }
  expect(server.count('tools/list')).toBe(1)
  const own = await serve({ t: () => 'x' }, { ttlMs: 60_000, cacheScope: 'private' })
  const ownFacts = new ServerFacts()
  for (let i = 0; i < 2; i++) await (await connect(own.url, { facts: ownFacts })).tools()
  expect(own.count('tools/list')).toBe(2)
})

test('a list without a lifetime is read for each turn, or again when the server reports a change', async () => {
  const plain = await serve({ t: () => 'x' })
  const connection = await connect(plain.url)
  await connection.tools()
  await connection.tools()
  expect(plain.count('tools/list')).toBe(2)
  const reporting = await serve({ t: () => 'x' }, { listChanged: true })
  const subscribed = await connect(reporting.url)
  const names = async () => (await subscribed.tools()).map(({ name }) => name)
  await names()
  // A list that was read before the subscription does not count.
  await expect
    .poll(async () => {
      const before = reporting.count('tools/list')
      await names()
      return reporting.count('tools/list') - before
    })
    .toBe(0)
  reporting.tools = { other: () => 'y' }
  reporting.tellChange()
  await expect.poll(names).toEqual(['other'])
})

test.each([
  [
    'an error',
    (message: Parameters<typeof sendError>[1], response: Parameters<typeof sendError>[0]) =>
      sendError(response, message, -32_602, 'Unknown tool: t', 200),
  ],
  [
    'a failed result',
    (message: Parameters<typeof sendError>[1], response: Parameters<typeof sendError>[0]) =>
      sendResult(response, message, { isError: true, ...texts('MCP error -32602: Tool t not found') }),
  ],
])('a list is read again after %s about an unknown tool', async (_, answer) => {
  let name = 't'
  const server = await serveRaw((message, response) => {
    if (message.method === 'tools/list') sendResult(response, message, { tools: [{ name }] })
    else answer(message, response)
  })
  const connection = await connect(server.url)
  const names = async () => (await connection.tools()).map((tool) => tool.name)
  expect(await names()).toEqual(['t'])
  name = 'u'
  expect(await names()).toEqual(['t'])
  await connection.call('t', {}, limit()).catch(() => {})
  expect(await names()).toEqual(['u'])
})

test('tools with invalid x-mcp-header members are not used', async () => {
  const one = (property: unknown) => ({ type: 'object', properties: { a: property } })
  const mark = { 'x-mcp-header': 'A' }
  const schemas = {
    fine: one({ type: 'string', ...mark }),
    number: one({ type: 'number', ...mark }),
    spaced: one({ type: 'string', 'x-mcp-header': 'A B' }),
    injected: one({ type: 'string', 'x-mcp-header': 'A\r\nB' }),
    twice: {
      type: 'object',
      properties: { a: { type: 'string', ...mark }, b: { type: 'string', 'x-mcp-header': 'a' } },
    },
    array: one({ type: 'array', items: { type: 'string', ...mark } }),
    choice: { type: 'object', anyOf: [one({ type: 'string', ...mark })] },
    property: { type: 'object', properties: { 'x-mcp-header': { type: 'string' } } },
  }
  const tools = Object.entries(schemas).map(([name, inputSchema]) => ({ name, inputSchema }))
  const server = await serveRaw(
    (message, response) =>
      sendResult(response, message, { resultType: 'complete', tools, ttlMs: 0, cacheScope: 'private' }),
    DISCOVERED,
  )
  const names = (await (await connect(server.url)).tools()).map(({ name }) => name)
  expect(names).toEqual(['fine', 'property'])
})

test('parameters that need headers make the gateway read the list, and call once more', async () => {
  const inputSchema = { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }
  let refused = 0
  const server = await serve(
    { t: { inputSchema, run: () => 'ok' } },
    {
      ttlMs: 60_000,
      intercept: (request, response) => {
        if (request.headers['mcp-method'] !== 'tools/call' || request.headers['mcp-param-a'] !== undefined)
          return false
        refused++
        request.resume().on('end', () => sendError(response, {}, -32_020, 'Mcp-Param-A is missing'))
        return true
      },
    },
  )
  const connection = await connect(server.url)
  expect((await connection.call('t', { a: 'x' }, limit())).text).toBe('ok')
  expect([refused, server.count('tools/list'), server.count('tools/call')]).toEqual([1, 1, 1])
})

test('a question of the server is declined, and reaches the model with the result', async () => {
  const requestedSchema = { type: 'object', properties: { sure: { type: 'boolean' } } } as const
  const server = await serve({
    deploy: (_input, { mcpReq }) => {
      const answer = mcpReq.inputResponses?.sure as { action?: string } | undefined
      if (answer !== undefined) return `not deployed: ${answer.action}, ${mcpReq.requestState()}`
      const sure = inputRequired.elicit({ message: 'Deploy to production?', requestedSchema })
      return inputRequired({ inputRequests: { sure }, requestState: 's1' })
    },
  })
  const { text } = await (await connect(server.url)).call('deploy', {}, limit())
  expect(text).toBe(
    'The server asked its user, and got no answer: Deploy to production?\nnot deployed: decline, s1',
  )
})

test.each([
  ['one question', 1, 'Sure?', true],
  ['several questions', 2, 'Sure?', false],
  ['a question beyond the bound', 1, 'x'.repeat(70_000), false],
])('%s for a client that can answer: ends the call, or is declined', async (_, count, message, isAsked) => {
  const server = await serve({
    t: (_input, { mcpReq }) => {
      if (mcpReq.inputResponses !== undefined) return 'declined'
      const params = { message, requestedSchema: { type: 'object', properties: {} } } as const
      const asked = Array.from({ length: count }, (_, i) => [`q${i}`, inputRequired.elicit(params)])
      return inputRequired({ inputRequests: Object.fromEntries(asked), requestState: 's' })
    },
  })
  const output = await (await connect(server.url)).call('t', {}, { ...limit(), elicits: true })
  expect(output.question?.params.message).toBe(isAsked ? message : undefined)
  expect(output.text.endsWith('declined')).toBe(!isAsked)
})

test('a server that asks for sampling is refused by capability', async () => {
  const server = await serve({
    think: () =>
      inputRequired({ inputRequests: { a: inputRequired.createMessage({ messages: [], maxTokens: 1 }) } }),
  })
  await expect((await connect(server.url)).call('think', {}, limit())).rejects.toMatchObject({
    type: 'mcp_protocol_error',
  })
})

test('a server that asks without end fails the call', async () => {
  const asking = {
    resultType: 'input_required',
    inputRequests: { a: { method: 'elicitation/create', params: { message: 'again?' } } },
  }
  const server = await serveRaw((message, response) => sendResult(response, message, asking), DISCOVERED)
  await expect((await connect(server.url)).call('t', {}, limit())).rejects.toMatchObject({
    message: 'the server asked for input more than 16 times',
  })
})

test.each([
  ['an unknown type of result', { resultType: 'later' }, "the result has the unknown type 'later'"],
  ['a task without an id', { resultType: 'task' }, 'the task has no id'],
])('%s fails the call', async (_, result, message) => {
  const server = await serveRaw((request, response) => sendResult(response, request, result), DISCOVERED)
  await expect((await connect(server.url)).call('t', {}, limit())).rejects.toMatchObject({ message })
})

test('an id that comes back as a string, and an error without one, belong to the call', async () => {
  const server = await serveRaw((message, response) => {
    if (message.params?.name === 'bad') sendError(response, {}, -32_700, 'cannot read', 200)
    else sendResult(response, { id: String(message.id) as never }, texts('ok'))
  })
  const connection = await connect(server.url)
  expect((await connection.call('t', {}, limit())).text).toBe('ok')
  await expect(connection.call('bad', {}, limit())).rejects.toMatchObject({
    code: -32_700,
    message: 'cannot read',
  })
})

describe('a task', () => {
  const task = (status: string, more: object = {}) => ({
    taskId: 'task 1',
    status,
    pollIntervalMs: 100,
    ...more,
  })
  /** Responds to `tasks/get` with these states, one after another. */
  async function serveTask(...states: object[]) {
    const updates: unknown[] = []
    const names: unknown[] = []
    const server = await serveRaw((message, response, request) => {
      if (message.method?.startsWith('tasks/')) names.push(request.headers['mcp-name'])
      if (message.method === 'tools/call')
        return sendResult(response, message, { resultType: 'task', ...task('working') })
      if (message.method === 'tasks/update') updates.push(message.params?.inputResponses)
      const state = message.method === 'tasks/get' ? (states.length > 1 ? states.shift() : states[0]) : {}
      sendResult(response, message, { resultType: 'complete', ...state })
    }, DISCOVERED)
    return { server, updates, names }
  }

  test('is polled until it is completed, its questions are declined once', async () => {
    const asked = task('input_required', {
      inputRequests: { q: { method: 'elicitation/create', params: { message: 'Sure?' } } },
    })
    const { server, updates, names } = await serveTask(
      task('working'),
      asked,
      asked,
      task('completed', { result: texts('ran') }),
    )
    const { text } = await (await connect(server.url)).call('t', {}, limit())
    expect(text).toBe('The server asked its user, and got no answer: Sure?\nran')
    expect(updates).toEqual([{ q: { action: 'decline' } }])
    expect(new Set(names)).toEqual(new Set(['task 1']))
  })

  test.each([
    ['failed', task('failed', { error: { code: -32_000, message: 'disk full' } }), 'disk full'],
    ['cancelled', task('cancelled'), 'the server cancelled the task'],
  ])('that is %s fails the call', async (_, state, message) => {
    const { server } = await serveTask(state)
    await expect((await connect(server.url)).call('t', {}, limit())).rejects.toMatchObject({ message })
  })

  test('is cancelled when its turn ends, or after maxCallMs', async () => {
    const { server } = await serveTask(task('working'))
    const connection = await connect(server.url)
    const turn = new AbortController()
    const call = connection.call('t', {}, { signal: turn.signal, timeoutMs: 20_000 })
    await expect.poll(() => server.received).toContain('tasks/get')
    turn.abort()
    await expect(call).rejects.toMatchObject({ message: 'cancelled' })
    await expect.poll(() => server.received).toContain('tasks/cancel')
    const hasty = await connect(server.url, { limits: { maxCallMs: 150 } })
    await expect(hasty.call('t', {}, limit(100))).rejects.toMatchObject({ message: 'no response in time' })
  })
})

test('1,000 calls cost one request each', async () => {
  const server = await serve({ t: () => 'x' }, { ttlMs: 60_000 })
  const connection = await connect(server.url)
  for (let turn = 0; turn < 1_000; turn++) {
    await connection.tools()
    await connection.call('t', {}, limit())
  }
  expect(server.received).toHaveLength(1_002)
}, 60_000)
