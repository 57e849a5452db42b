/** Exceptions of plugins in callbacks without a caller: each fails its own request, and the thread continues. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import {
  apiErrorFormat,
  type CallHandler,
  type Host,
  type RequestContext,
  type ResponseReceiver,
  type RouteDefinition,
  type SocketHandler,
} from '#kernel'
import { type HookedGateway, openHooked } from '../support/hooked-gateway.ts'
import { type Script, sseAnswer } from '../support/scripted-worker.ts'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const docs = { summary: 'of a test', tag: 'test', responses: {} }
const nothing = () => {}
const careless = (): never => {
  throw new Error('careless')
}

function route(host: Host, path: string, handler: RouteDefinition['handler']): void {
  host.route({ method: 'POST', path, access: 'public', errors: apiErrorFormat, docs, handler })
}

async function open(register: (host: Host) => void, answer: Script): Promise<HookedGateway> {
  const hooked = await openHooked(
    (host) => {
      route(host, '/alive', (ctx) => ctx.text(200, 'alive'))
      register(host)
    },
    { answer },
  )
  cleanups.push(() => hooked.close())
  return hooked
}

async function post(hooked: HookedGateway, path: string): Promise<string> {
  const response = await fetch(`${hooked.gateway.url}${path}`, { method: 'POST', body: '{}' })
  return response.text().catch(() => 'cut')
}

/** Sends a request, and disconnects once the handler has it. */
async function leave(hooked: HookedGateway, path: string, arrived: Promise<unknown>): Promise<void> {
  const socket = connect({ port: hooked.gateway.port, host: '127.0.0.1' })
  socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`)
  await arrived
  socket.destroy()
  await once(socket, 'close')
}

function openCall(host: Host, ctx: RequestContext, handler: Partial<CallHandler>): void {
  host.upstream.open(
    {
      ctx: ctx as Parameters<Host['upstream']['open']>[0]['ctx'],
      model: null,
      stream: true,
      worker: null,
      tokenIds: null,
      promptBytes: null,
      accepts: null,
      requestFor: () => ({ method: 'POST', path: '/echo', headers: [], body: Buffer.from('{}') }),
    },
    {
      onHead: nothing,
      onData: nothing,
      onEnd: () => ctx.text(200, 'whole'),
      onFailed: (error) => ctx.fail(error),
      ...handler,
    },
  )
}

describe('a callback of a call to a worker', () => {
  test.each(['onHead', 'onData', 'faultAtEnd', 'onEnd'] as const)('%s that throws', async (name) => {
    const hooked = await open(
      (host) => route(host, '/call', (ctx) => openCall(host, ctx, { [name]: careless })),
      sseAnswer(['1', '2', '[DONE]']),
    )
    expect(await post(hooked, '/call')).toContain('internal_error')
    expect(await post(hooked, '/alive')).toBe('alive')
    expect(await hooked.inFlight()).toBe(0)
  })

  test('onFailed that throws', async () => {
    const hooked = await open(
      (host) => route(host, '/call', (ctx) => openCall(host, ctx, { onFailed: careless })),
      sseAnswer(['1', { drop: 'reset' }]),
    )
    expect(await post(hooked, '/call')).toContain('internal_error')
    expect(await post(hooked, '/alive')).toBe('alive')
  })

  test.each(['observe', 'chunk', 'end'] as const)('%s of a response format that throws', async (name) => {
    const end = { end: 'complete' as const, rest: Buffer.alloc(0), usage: null, hasOutputUsage: false }
    const observer = {
      chunk: (chunk: Buffer) => chunk,
      end: () => ({ ...end, outputEvents: 0, unreadBytes: 0 }),
    }
    const format = {
      observe: () => ({ ...observer, [name]: careless }),
      usageOf: () => null,
      ...(name === 'observe' && { observe: careless }),
    }
    const hooked = await open(
      (host) =>
        route(host, '/call', (ctx) => host.upstream.relay(ctx, { model: null, path: '/echo', format })),
      sseAnswer(['1', '2', '[DONE]']),
    )
    await post(hooked, '/call')
    expect(await post(hooked, '/alive')).toBe('alive')
    expect(await hooked.inFlight()).toBe(0)
  })
})

test.each<[string, (ctx: RequestContext) => void]>([
  ['a complete response', (ctx) => ctx.json(200, {}, ['x-name', 'a\r\nx-injected: b'])],
  ['a response of bytes', (ctx) => ctx.send(200, 'text/plain', 'x', ['x-name\r\nx-injected', 'b'])],
  ['a stream', (ctx) => ctx.sse(200, ['x-name', 'a\nx-injected: b']).end('data: 1\n\n')],
])('%s with a line end in a header is not sent', async (_what, respond) => {
  const hooked = await open((host) => route(host, '/split', respond), sseAnswer([]))
  const response = await fetch(`${hooked.gateway.url}/split`, { method: 'POST', body: '{}' })
  expect(response.headers.get('x-injected')).toBeNull()
  expect([response.status, await response.json()]).toMatchObject([500, { error: { code: 'internal_error' } }])
})

describe('a listener of the end of a request', () => {
  test.each(['onCancel', 'onAbort'] as const)('%s that throws when the client disconnects', async (name) => {
    const arrived = Promise.withResolvers<void>()
    const cancelled = Promise.withResolvers<void>()
    const hooked = await open(
      (host) =>
        route(host, '/wait', (ctx) => {
          ctx[name](careless)
          ctx[name](cancelled.resolve)
          arrived.resolve()
        }),
      sseAnswer([]),
    )
    await leave(hooked, '/wait', arrived.promise)
    await cancelled.promise
    expect(await post(hooked, '/alive')).toBe('alive')
  })

  test('onCancel that throws when the request fails: the error is sent', async () => {
    const hooked = await open(
      (host) =>
        route(host, '/fail', (ctx) => {
          ctx.onCancel(careless)
          setImmediate(() => ctx.fail(new Error('of the work')))
        }),
      sseAnswer([]),
    )
    expect(await post(hooked, '/fail')).toContain('internal_error')
    expect(await post(hooked, '/alive')).toBe('alive')
  })
})

describe('a WebSocket handler', () => {
  const bounds = { maxMessageBytes: 1_000, maxOpen: 10, maxPerTenant: 10, maxBufferedBytes: 1_000_000 }
  const receiver: ResponseReceiver = { onType: nothing, onData: () => true, onEnd: nothing, onCut: nothing }

  /** A socket that handles each message as a request with the given receiver. */
  async function openSocket(parts: Partial<SocketHandler>, receiving: Partial<ResponseReceiver> = {}) {
    const hooked = await open(
      (host) =>
        host.socket({
          path: '/socket',
          access: 'public',
          errors: apiErrorFormat,
          bounds,
          open: (socket) => ({
            onOpen: nothing,
            onMessage: (body) =>
              socket.run({
                body,
                receiver: { ...receiver, ...receiving },
                handler: (ctx) => {
                  if (body.toString() === 'fail') throw new Error('of the work')
                  if (body.toString() !== 'stream') return ctx.text(200, 'done')
                  const stream = ctx.sse()
                  stream.write('data: 1\n\n')
                  setTimeout(() => ctx.destroy())
                },
                onEnd: () => socket.send('over', false),
              }),
            onClose: nothing,
            goAway: nothing,
            ...parts,
          }),
        }),
      sseAnswer([]),
    )
    const ws = new WebSocket(`${hooked.gateway.url.replace('http', 'ws')}/socket`)
    await once(ws, 'open')
    return { hooked, ws }
  }

  test.each(['onOpen', 'onMessage', 'onClose', 'goAway'] as const)('%s that throws', async (name) => {
    const { hooked, ws } = await openSocket({ [name]: careless })
    ws.send('a')
    ws.close()
    await once(ws, 'close')
    expect(await post(hooked, '/alive')).toBe('alive')
  })

  test.each([
    ['onType', 'once'],
    ['onData', 'once'],
    ['onEnd', 'once'],
    ['onData', 'fail'],
    ['onData', 'stream'],
    ['onCut', 'stream'],
  ] as const)('%s of a receiver that throws, of a message that is to %s', async (name, message) => {
    const { hooked, ws } = await openSocket({}, { [name]: careless })
    ws.send(message)
    const [over] = await once(ws, 'message')
    expect(String(over)).toBe('over')
    expect(await post(hooked, '/alive')).toBe('alive')
    ws.terminate()
  })
})
