/** Misbehaving hooks and handlers on the response path: each request still ends once, and releases everything. */

import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import {
  apiErrorFormat,
  type Host,
  type RequestContext,
  type RouteDefinition,
  type WholeResponse,
} from '#kernel'
import { collectResponse } from '#shared'
import { type HookedGateway, type HookedOptions, openHooked } from '../support/hooked-gateway.ts'
import { sendRaw } from '../support/raw-socket.ts'
import { hangAnswer, jsonAnswer, sseAnswer, streamAnswer } from '../support/scripted-worker.ts'
import { textUntilCut } from '../support/text-until-cut.ts'

const ECHO = 'POST /echo'
const ALL = { scope: 'all' } as const
const LINE_BREAK = 'a\r\nset-cookie: stolen=1'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

async function open(register: (host: Host) => void, options?: HookedOptions): Promise<HookedGateway> {
  const hooked = await openHooked(register, { answer: jsonAnswer({ from: 'worker' }), ...options })
  cleanups.push(() => hooked.close())
  return hooked
}

function ownRoute(path: string, handler: RouteDefinition['handler']): RouteDefinition {
  return {
    method: 'POST',
    path,
    access: 'public',
    errors: apiErrorFormat,
    handler,
    docs: { summary: 'own', tag: 'test', responses: {} },
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

function post(hooked: HookedGateway, path: string): Promise<Response> {
  return fetch(`${hooked.gateway.url}${path}`, { method: 'POST', body: '{"model":"m"}' })
}

async function codeOf(reply: Response): Promise<[number, unknown]> {
  const body = (await reply.json()) as { error?: { code?: string } }
  return [reply.status, body.error?.code]
}

describe('a request that fails through ctx.fail', () => {
  test('aborts at once a worker request that a handler is collecting', async () => {
    const known: RequestContext[] = []
    const errors: unknown[] = []
    const hooked = await open(
      (host) =>
        host.route(
          ownRoute('/own', async (ctx) => {
            known.push(ctx)
            await collectResponse(host.upstream, ctx, { model: 'm', stream: false, path: '/echo' }).catch(
              (error: unknown) => errors.push(error),
            )
          }),
        ),
      { answer: hangAnswer() },
    )
    const reply = post(hooked, '/own')
    const seen = await hooked.worker.received(ECHO)
    known[0].fail(new Error('taken back'))
    expect(await codeOf(await reply)).toEqual([500, 'internal_error'])
    await seen.closed
    expect(await hooked.inFlight()).toBe(0)
    expect(errors).toHaveLength(1)
  })

  test('stops the relay even while an onResponse and an onError hook are pending', async () => {
    const known: RequestContext[] = []
    let release: () => void = () => {}
    const hooked = await open(
      (host) => {
        host.hook(
          'onResponse',
          (ctx) => {
            known.push(ctx)
            return new Promise((resolve) => {
              release = resolve
            })
          },
          ALL,
        )
        host.hook('onError', (_ctx, error) => new Promise((resolve) => setTimeout(resolve, 50, error)), ALL)
      },
      { answer: sseAnswer(['1', { waitMs: 20 }, '2', { waitMs: 20 }, '3', { hang: true }]) },
    )
    const reply = hooked.relay({ model: 'm', stream: true })
    while (known.length === 0) await turn()
    known[0].fail(new Error('taken back'))
    expect(await hooked.inFlight()).toBe(0)
    expect(await codeOf(await reply)).toEqual([500, 'internal_error'])
    release()
    await hooked.worker.requestsTo(ECHO)[0].closed
  })
})

test('after a hook has failed, no further bytes reach the client, even during a slow onError', async () => {
  const hooked = await open(
    (host) => {
      const refuse = () => {
        throw new Error('not for the client')
      }
      host.hook('onEvents', (_ctx, events) => (events.includes('2') ? refuse() : events), ALL)
      host.hook('onError', (_ctx, error) => new Promise((resolve) => setTimeout(resolve, 60, error)), ALL)
    },
    { answer: sseAnswer(['1', { waitMs: 20 }, '2', { waitMs: 20 }, 'secret', { hang: true }]) },
  )
  const text = await textUntilCut(await hooked.relay({ model: 'm', stream: true }))
  expect(text).toContain('internal_error')
  expect(text).not.toContain('secret')
  expect(await hooked.inFlight()).toBe(0)
})

test.each(['data: secret', 'data: secret\n', 'data: secret\r', 'data: secret\r\n', 'data: secret\r\r'])(
  'the last event of a stream reaches no client past the hooks for want of its end: %j',
  async (end) => {
    const hooked = await open(
      (host) =>
        host.hook(
          'onEvents',
          (_ctx, events) => turn().then(() => Buffer.from(events.toString().replace('secret', 'hidden'))),
          ALL,
        ),
      { answer: streamAnswer(['data: 1\n\n', end], { headers: { 'content-type': 'text/event-stream' } }) },
    )
    const text = await textUntilCut(await hooked.relay({ model: 'm', stream: true }))
    expect(text).toMatch(/^data: 1\n\ndata: hidden(\n\n|\r\n\n|\r\r\n\n)$/)
  },
)

test('a handler that throws while onResponse is pending for its stream results in the error', async () => {
  const hooked = await open((host) => {
    host.hook('onResponse', () => new Promise((resolve) => setTimeout(resolve, 30)), ALL)
    host.route(
      ownRoute('/own', async (ctx) => {
        ctx.sse()
        await turn()
        throw new Error('careless')
      }),
    )
  })
  expect(await codeOf(await post(hooked, '/own'))).toEqual([500, 'internal_error'])
})

describe('a response from a hook is validated before it is sent', () => {
  const wrong: [string, WholeResponse][] = [
    ['a status that is none', { status: 7 }],
    ['a body that is no text', { status: 200, body: 5 as unknown as string }],
    ['a header with a line break', { status: 200, headers: ['x-own', LINE_BREAK] }],
    ['a header name with a colon', { status: 200, headers: ['x: y', 'z'] }],
    ['a content type with a line break', { status: 200, contentType: LINE_BREAK }],
  ]
  test.each(wrong)('onRequest with %s is 500', async (_what, reply) => {
    const hooked = await open((host) => host.hook('onRequest', () => reply, ALL))
    const answer = await hooked.relay()
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect(await codeOf(answer)).toEqual([500, 'internal_error'])
  })

  test.each(wrong)('a late onError with %s is 500', async (_what, reply) => {
    const hooked = await open((host) => {
      host.hook('onRequest', () => Promise.reject(new Error('careless')), ALL)
      host.hook('onError', () => turn().then(() => reply), ALL)
    })
    const answer = await hooked.relay()
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect(await codeOf(answer)).toEqual([500, 'internal_error'])
  })

  test.each([
    ['a value with a line break', ['x-own', LINE_BREAK]],
    ['a name with a line break', ['x-own\r\nset-cookie', 'stolen=1']],
    ['an empty name', ['', 'x']],
  ])('onResponse that adds %s is 500', async (_what, header) => {
    const hooked = await open((host) =>
      host.hook('onResponse', (_ctx, response) => void response.headers.push(...header), ALL),
    )
    const answer = await hooked.relay()
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect(await codeOf(answer)).toEqual([500, 'internal_error'])
  })

  test('onResponse cannot change the framing', async () => {
    const hooked = await open((host) =>
      host.hook(
        'onResponse',
        (_ctx, { headers }) =>
          void headers.push(
            'content-length',
            '1',
            'Transfer-Encoding',
            'x',
            'connection',
            'close',
            'x-own',
            '1',
          ),
        ALL,
      ),
    )
    const body = '{"model":"m"}'
    const request = `POST /relay HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const { text } = await sendRaw(Number(new URL(hooked.gateway.url).port), request, {
      until: (soFar) => soFar.includes('worker"}'),
    })
    const head = text.slice(0, text.indexOf('\r\n\r\n')).toLowerCase()
    expect(head.match(/content-length: \d+/g)).toEqual(['content-length: 17'])
    expect(head).not.toMatch(/transfer-encoding|connection/)
    expect(head).toContain('x-own: 1')
  })

  test.each([204, 304])('a stream that onResponse makes a %i has no body', async (status) => {
    const hooked = await open(
      (host) =>
        host.hook(
          'onResponse',
          (_ctx, response) => {
            response.status = status
          },
          ALL,
        ),
      { answer: sseAnswer(['1', { waitMs: 10 }, '2', { hang: true }]) },
    )
    const body = '{"model":"m","stream":true}'
    const request = `POST /relay HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const reply = await sendRaw(Number(new URL(hooked.gateway.url).port), request, { waitMs: 2_000 })
    expect(reply.statuses).toEqual([status])
    expect(reply.text.endsWith('\r\n\r\n')).toBe(true)
    expect(reply.text).not.toContain('data:')
    expect(await hooked.inFlight()).toBe(0)
  })
})

test.each([
  ['value with a line break', 'x-own', LINE_BREAK],
  ['value that no header can hold', 'x-own', 'price in \u20ac'],
  ['name with a space', 'x own', '1'],
])('changeHeader refuses a %s, and no worker is asked', async (_what, name, value) => {
  const hooked = await open((host) =>
    host.hook('onRequest', (ctx) => ctx.changeHeader('set', name, value), ALL),
  )
  expect(await codeOf(await hooked.relay())).toEqual([500, 'internal_error'])
  expect(hooked.worker.requestsTo(ECHO)).toEqual([])
})

test('if an onDone hook throws, the rejection of another one is still handled', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', note)
  cleanups.push(async () => process.off('unhandledRejection', note))
  const hooked = await open((host) => {
    const careless = () => {
      throw new Error('careless')
    }
    host.hook('onDone', careless, ALL)
    host.hook('onDone', () => Promise.reject(new Error('late')), ALL)
    host.hook('onDone', careless, ALL)
  })
  expect((await hooked.relay()).status).toBe(200)
  for (let i = 0; i < 5; i++) await turn()
  expect(unhandled).toEqual([])
})

test('a client that does not read pauses a writer through a slow onEvents, and receives every event later', async () => {
  const event = `data: ${'x'.repeat(16_378)}\n\n`
  const count = 2_000
  let written = 0
  let isHeldBack = false
  const hooked = await open((host) => {
    host.hook('onEvents', (_ctx, events) => turn().then(() => events), ALL)
    host.route(
      ownRoute('/own', async (ctx) => {
        const stream = ctx.sse()
        while (written < count) {
          written++
          if (stream.write(event)) await turn()
          else {
            isHeldBack = true
            await new Promise<void>((resolve) => ctx.flow.whenReleased(resolve))
          }
        }
        stream.end()
      }),
    )
  })
  const socket = connect(Number(new URL(hooked.gateway.url).port), '127.0.0.1')
  cleanups.push(async () => socket.destroy())
  socket.pause()
  socket.write('POST /own HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}')
  while (!isHeldBack && written < count) await turn()
  expect(isHeldBack).toBe(true)
  expect(written).toBeLessThan(count)
  let received = 0
  await new Promise<void>((resolve) => {
    socket.on('data', (bytes: Buffer) => {
      received += bytes.length
      if (bytes.subarray(-5).toString() === '0\r\n\r\n') resolve()
    })
    socket.resume()
  })
  expect(written).toBe(count)
  expect(received).toBeGreaterThan(count * event.length)
})
