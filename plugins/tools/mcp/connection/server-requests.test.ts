/** Calls that bypass the protocol library, and calls that the library takes over. */
import { afterEach, expect, test } from 'vitest'
import { ANYWHERE } from '#shared'
import { type RawServer, sendResult, startRawServer } from '../../../../test/support/mcp/raw-server.ts'
import { testConfig, testLog } from '../../../../test/support/mcp/run-turn.ts'
import { outgoingHttp } from '../../../../test/support/outgoing-http.ts'
import { ServerConnection } from './server-connection.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function open(...args: Parameters<typeof startRawServer>) {
  const server: RawServer = await startRawServer(...args)
  const url = new URL(server.url)
  const headers = new Map([['x-own', 'mine']])
  const connection = await ServerConnection.open(
    { kind: 'http', url, protocol: 'auto', headers, rules: ANYWHERE },
    testConfig().limits,
    testLog(),
    outgoingHttp,
  )
  ends.push(
    () => connection.close(),
    () => server.close(),
  )
  const call = () =>
    connection.call('t', { a: 1 }, { signal: new AbortController().signal, timeoutMs: 5_000 })
  return { server, connection, call }
}

const EVENTS = { 'content-type': 'text/event-stream' }
const resultOf = (id: number | undefined, text: string) =>
  `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } })}\n\n`

test('a call sends what the library sends: protocol version, own headers, name and arguments', async () => {
  let seen: unknown
  const { call } = await open((message, response, request) => {
    const { 'mcp-protocol-version': version, 'x-own': own, accept } = request.headers
    seen = [version, own, accept, message.params]
    sendResult(response, message, { content: [] })
  })
  await call()
  expect(seen).toEqual([
    '2025-06-18',
    'mine',
    'application/json, text/event-stream',
    { name: 't', arguments: { a: 1 }, _meta: { progressToken: expect.any(Number) } },
  ])
})

test('a response may be a stream, among messages that are not for the call', async () => {
  const { call, server } = await open((message, response) => {
    if (message.method === undefined) return void response.writeHead(202).end()
    response.writeHead(200, EVENTS)
    response.write('event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n')
    response.write('data: {"jsonrpc":"2.0","id":"ask","method":"ping"}\n\ndata: {half\n\n')
    response.end(resultOf(message.id, 'found'))
  })
  expect((await call()).text).toBe('found')
  await expect.poll(() => server.received).toContain('answer')
})

test('a stream with ids that ends without its response is resumed', async () => {
  let asked: string | undefined
  let id: number | undefined
  const { call } = await open((message, response, request) => {
    response.writeHead(200, EVENTS)
    if (message.method === 'GET') {
      if (request.headers['last-event-id'] === undefined) return
      asked = request.headers['last-event-id'] as string
      response.end(resultOf(id, 'later'))
    } else {
      id = message.id
      response.end('id: e1\nretry: 10\ndata:\n\n')
    }
  })
  expect([(await call()).text, asked]).toEqual(['later', 'e1'])
})

test('a body for another request fails the call at once', async () => {
  const { call } = await open((message, response) =>
    sendResult(response, { ...message, id: 5 }, { content: [] }),
  )
  await expect(call()).rejects.toMatchObject({
    type: 'mcp_protocol_error',
    message: 'the response is for another request',
  })
})

test('an error of the server keeps its code and message', async () => {
  const { call } = await open((message, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const error = { code: -32_602, message: 'no such tool' }
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }))
  })
  await expect(call()).rejects.toMatchObject({ code: -32_602, message: 'no such tool' })
})

test('a call lost on a kept connection is never sent again, because the tool may have run', async () => {
  let calls = 0
  const { call } = await open((message, response) => {
    if (message.method === 'tools/call' && ++calls > 1) return void response.socket?.destroy()
    sendResult(response, message, { content: [] })
  })
  await call()
  await expect(call()).rejects.toMatchObject({ message: 'the server closed the connection' })
  expect(calls).toBe(2)
})

test('a redirect within the server is followed by the library, with the result of the call', async () => {
  const { call } = await open((message, response, request) => {
    if (request.url === '/mcp') return void response.writeHead(307, { location: '/other' }).end()
    sendResult(response, message, { content: [{ type: 'text', text: 'there' }] })
  })
  expect((await call()).text).toBe('there')
})

test('a stream that stays open after its response does not hold its permit', async () => {
  const { call, server } = await open((message, response) => {
    response.writeHead(200, EVENTS).write(resultOf(message.id, 'ok'))
  })
  const many = await Promise.all(Array.from({ length: 33 }, call))
  expect(many.every(({ text }) => text === 'ok')).toBe(true)
  expect(await server.connections()).toBeGreaterThan(0)
})

test('a deeply nested response is rejected before parsing', async () => {
  const { call } = await open((message, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const depth = 200_000
    response.end(
      `{"jsonrpc":"2.0","id":${message.id},"result":{"content":[],"structuredContent":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}}`,
    )
  })
  await expect(call()).rejects.toMatchObject({ type: 'http_error' })
})
