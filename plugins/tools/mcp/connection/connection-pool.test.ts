/** Leasing and sharing of connections, and closing of idle ones. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { sendResult, startRawServer } from '../../../../test/support/mcp/raw-server.ts'
import { mcpTool, only, TestLoop, testConfig } from '../../../../test/support/mcp/run-turn.ts'
import { scriptedModel } from '../../../../test/support/mcp/scripted-model.ts'
import { startToolServer } from '../../../../test/support/mcp/tool-server.ts'
import { ConnectionPool } from './connection-pool.ts'
import { connectionKey, type ServerTarget } from './server-target.ts'
import { ToolServerError } from './tool-server-error.ts'

const stdio: ServerTarget = { kind: 'stdio', command: 'x', args: [], env: {} }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

class Fake {
  isClosed = false
  close = async () => {
    this.isClosed = true
  }
}

function openPool(some: Record<string, unknown> = {}, open?: () => Promise<never>) {
  const opened: Fake[] = []
  const openFake = async () => {
    const fake = new Fake()
    opened.push(fake)
    return fake as never
  }
  const pool = new ConnectionPool({ ...testConfig().limits, idleMs: 1_000, ...some }, open ?? openFake)
  return { pool, opened }
}

test('one connection per key, shared while it is open', async () => {
  const { pool, opened } = openPool()
  const [a, b] = await Promise.all([pool.lease('k', stdio), pool.lease('k', stdio)])
  const c = await pool.lease('l', stdio)
  expect(a.connection).toBe(b.connection)
  expect(c.connection).not.toBe(a.connection)
  expect(opened).toHaveLength(2)
  await pool.close()
  expect(opened.every(({ isClosed }) => isClosed)).toBe(true)
})

test('idle connections are closed, leased ones are not', async () => {
  const { pool, opened } = openPool()
  const used = await pool.lease('used', stdio)
  const idle = await pool.lease('idle', stdio)
  idle.release()
  idle.release()
  await vi.advanceTimersByTimeAsync(1_500)
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([false, true])
  used.release()
  await vi.advanceTimersByTimeAsync(1_500)
  expect([pool.size, opened[0].isClosed]).toEqual([0, true])
  await pool.close()
})

test('a broken connection is replaced; the broken one is removed with its last user', async () => {
  const { pool, opened } = openPool()
  const old = await pool.lease('k', stdio)
  opened[0].isClosed = true
  const fresh = await pool.lease('k', stdio)
  expect(fresh.connection).not.toBe(old.connection)
  old.release()
  expect((await pool.lease('k', stdio)).connection).toBe(fresh.connection)
  await pool.close()
})

test('at the limit the least recently used connection is closed; if all are in use, the next is rejected', async () => {
  const { pool, opened } = openPool({ maxConnections: 2 })
  const a = await pool.lease('a', stdio)
  a.release()
  vi.advanceTimersByTime(10)
  const b = await pool.lease('b', stdio)
  b.release()
  await pool.lease('c', stdio)
  await vi.advanceTimersByTimeAsync(0)
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([true, false, false])
  await pool.lease('b', stdio)
  await expect(pool.lease('d', stdio)).rejects.toThrow('too many tool servers')
  await pool.close()
})

test('an unreachable server is retried with increasing delays', async () => {
  let tries = 0
  const open = async () => {
    tries++
    throw new ToolServerError('http_error', 0, 'cannot reach the server')
  }
  const { pool } = openPool({}, open)
  const lease = () => expect(pool.lease('k', stdio)).rejects.toThrow('cannot reach')
  await lease()
  await lease()
  expect(tries).toBe(1)
  for (const [waitMs, expected] of [
    [499, 1],
    [1, 2],
    [999, 2],
    [1, 3],
    [2_000, 4],
    [30_000, 5],
    [30_000, 6],
  ]) {
    vi.advanceTimersByTime(waitMs)
    await lease()
    expect(tries).toBe(expected)
  }
  await pool.close()
})

test('keys differ by tenant, place and credentials, and contain no secret', () => {
  const to = (headers: Record<string, string>): ServerTarget => ({
    kind: 'http',
    url: new URL('http://x/'),
    protocol: 'auto',
    headers: new Map(Object.entries(headers)),
    rules: {} as never,
  })
  const keys = [
    connectionKey('a', 'p', to({})),
    connectionKey('b', 'p', to({})),
    connectionKey(null, 'p', to({})),
    connectionKey('a', 'q', to({})),
    connectionKey('a', 'p', to({ authorization: 'secret' })),
    connectionKey('a', 'p', to({ authorization: 'other' })),
    connectionKey('a', 'p', to({ a: 'b","c' })),
    connectionKey('a', 'p', to({ a: 'b', '","c': '' })),
  ]
  expect(new Set(keys).size).toBe(keys.length)
  expect(keys.join()).not.toContain('secret')
  expect(connectionKey('a', 'p', to({ a: '1', b: '2' }))).toBe(
    connectionKey('a', 'p', to({ b: '2', a: '1' })),
  )
})

test('a lost session is replaced, and the call runs once', async () => {
  vi.useRealTimers()
  const server = await startToolServer({ a: () => 'ok' })
  const loop = new TestLoop()
  const tools = [mcpTool('s', server.url)]
  await loop.run(scriptedModel({ text: 'x' }), { tools })
  server.forget()
  const events = await loop.run(scriptedModel({ calls: [['a', {}]] }, { text: 'x' }), { tools })
  expect(only(events, 'call_done')[0].result).toMatchObject({ status: 'completed', output: 'ok' })
  expect([server.sessions, server.ran.length]).toEqual([2, 1])
  await loop.pool.close()
  await server.close()
})

test('a server that reports changed tools is listed again', async () => {
  vi.useRealTimers()
  const server = await startToolServer({ a: () => 'ok' })
  const loop = new TestLoop()
  const tools = [mcpTool('s', server.url)]
  await loop.run(scriptedModel({ text: 'x' }), { tools })
  await expect
    .poll(async () => {
      await server.tellChange()
      await loop.run(scriptedModel({ text: 'x' }), { tools })
      return server.lists
    })
    .toBeGreaterThan(1)
  await loop.pool.close()
  await server.close()
})

test('500 concurrent turns with three calls each leave no connection, permit or request behind', async () => {
  vi.useRealTimers()
  let ran = 0
  const server = await startRawServer((message, response) => {
    if (message.method === 'tools/list') return sendResult(response, message, { tools: [{ name: 'a' }] })
    ran++
    sendResult(response, message, { content: [{ type: 'text', text: 'ok' }] })
  })
  const loop = new TestLoop({ limits: { maxCallsPerTenant: 100_000 } })
  const calls = [1, 2, 3].map((n) => ['a', { n }] as const)
  const turns = Array.from({ length: 500 }, () =>
    loop.run(scriptedModel({ calls }, { text: 'x' }), { tools: [mcpTool('s', server.url)] }),
  )
  const results = (await Promise.all(turns)).flatMap((events) =>
    only(events, 'call_done').map(({ result }) => result.output),
  )
  expect(results).toHaveLength(1_500)
  expect(new Set(results)).toEqual(new Set(['ok']))
  const handshakes = server.received.filter((method) => method === 'initialize').length
  expect([handshakes, ran, loop.pool.size]).toEqual([1, 1_500, 1])
  loop.pool.sweep(Date.now() + 3_600_000)
  expect(loop.pool.size).toBe(0)
  await expect.poll(() => server.connections()).toBe(0)
  await loop.pool.close()
  await server.close()
}, 180_000)
