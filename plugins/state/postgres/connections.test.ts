/** One real server behind a gate that delays some connections. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type PostgresServer,
  postgresSkipReason,
  startPostgres,
} from '../../../test/support/postgres-server.ts'
import type { PostgresConfig } from './config.ts'
import { Connections } from './connections.ts'
import { PgStore } from './pg-store.ts'

const sockets = new Set<Socket>()
/** New connections are accepted and never answered. */
let isStalling = false

function keep(socket: Socket): void {
  sockets.add(socket)
  socket.on('error', () => {})
  socket.on('close', () => sockets.delete(socket))
}

describe.skipIf(postgresSkipReason !== null)('connections', () => {
  let server: PostgresServer
  const gate = createServer((socket) => {
    keep(socket)
    if (isStalling) return
    const port = Number(new URL(server.url).port)
    const to = connect(port, '127.0.0.1')
    keep(to)
    socket.pipe(to).pipe(socket)
  })
  let url = ''

  beforeAll(async () => {
    server = await startPostgres()
    gate.listen(0, '127.0.0.1')
    await once(gate, 'listening')
    url = `postgres://weir@127.0.0.1:${(gate.address() as AddressInfo).port}/postgres`
  })

  afterAll(async () => {
    for (const socket of sockets) socket.destroy()
    gate.close()
    await server?.remove()
  })

  const settings = () =>
    ({
      url,
      schema: 'weir',
      tls: { mode: 'url' },
      maxConnections: 2,
      connectTimeoutMs: 500,
      statementTimeoutMs: 30_000,
      maxWaiting: 100,
    }) as unknown as PostgresConfig

  const open = async () => {
    const connections = new Connections(settings(), () => {})
    await connections.open()
    return connections
  }

  test('a failed connection attempt while others work does not mark the server as unavailable', async () => {
    const connections = await open()
    try {
      isStalling = true
      const late = connections.query('select 1', [], true).catch((error: Error) => error.message)
      await expect.poll(() => sockets.size).toBeGreaterThan(0)
      isStalling = false
      // The working connection is in use until the other attempt has failed.
      const slow = connections.withClient(async (client) => {
        expect(await late).toMatch(/is unreachable/)
        const next = connections.query<{ one: number }>('select 1 as one', [], true)
        const [mine, others] = await Promise.all([client.query('select 2 as two'), next])
        return [...mine.rows, ...others]
      })
      expect(await slow).toEqual([{ two: 2 }, { one: 1 }])
    } finally {
      await connections.close()
    }
  })

  test('a server that stops responding on open connections is noticed within the connection timeout', async () => {
    const store = new PgStore(settings())
    await store.open()
    expect(await store.ping()).toBe(true)
    for (const socket of sockets) socket.pause()
    const startedAtMs = performance.now()
    await expect(store.ping()).rejects.toThrow(/timeout/)
    expect(performance.now() - startedAtMs).toBeLessThan(5_000)
    // The connection that did not respond is not used again.
    expect(await store.ping()).toBe(true)
    await store.close()
  })

  test('while nothing responds, operations fail at once between two attempts', async () => {
    const connections = await open()
    try {
      isStalling = true
      await expect(connections.query('select 1', [], true)).rejects.toThrow(/is unreachable/)
      const taken = sockets.size
      await expect(connections.query('select 1', [], true)).rejects.toThrow(/is unreachable/)
      expect(sockets.size).toBeLessThanOrEqual(taken)
    } finally {
      isStalling = false
      await connections.close()
    }
  })
})
