/** Requests that end in unusual places: disconnects while something is awaited, errors in hooks, responses without a body. */

import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Auth, apiErrorFormat, type Host, type RequestContext, type RouteDefinition } from '#kernel'
import { collectResponse } from '#shared'
import { type HookedGateway, type HookedOptions, openHooked } from '../support/hooked-gateway.ts'
import { sendRaw } from '../support/raw-socket.ts'
import {
  dropAnswer,
  hangAnswer,
  jsonAnswer,
  rawAnswer,
  sseAnswer,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'

const ECHO = 'POST /echo'
const ALL = { scope: 'all' } as const
const TO_ECHO = { model: null, stream: false, path: '/echo' }

const opened: HookedGateway[] = []
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})

async function open(register: (host: Host) => void, options?: HookedOptions): Promise<HookedGateway> {
  const hooked = await openHooked(register, options)
  opened.push(hooked)
  return hooked
}

function route(
  path: string,
  handler: RouteDefinition['handler'],
  method: 'GET' | 'POST' = 'POST',
): RouteDefinition {
  return {
    method,
    path,
    access: 'public',
    errors: apiErrorFormat,
    handler,
    docs: { summary: 'own', tag: 'test', responses: {} },
  }
}

/** A promise that the test settles, and a signal that something waits for it. */
function gate<T = void>() {
  const reached = Promise.withResolvers<void>()
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const pass = () => {
    reached.resolve()
    return promise
  }
  return { pass, reached: reached.promise, resolve, reject }
}

/** Sends a request, and disconnects once the promise resolves. */
async function sendAndDisconnect(hooked: HookedGateway, path: string, until: Promise<unknown>, done: Done) {
  const client = openSse(`${hooked.gateway.url}${path}`, { body: { model: 'm' } })
  await until
  client.close()
  await done.once
}

/** Counts ended requests; `once` resolves with the first. */
interface Done {
  readonly count: () => number
  readonly once: Promise<RequestContext>
}

function watchDone(host: Host): Done {
  const first = Promise.withResolvers<RequestContext>()
  let count = 0
  host.hook(
    'onDone',
    (ctx) => {
      count++
      first.resolve(ctx)
    },
    ALL,
  )
  return { count: () => count, once: first.promise }
}

const settle = () => wait(20)

describe('a client that disconnects', () => {
  test.each(['resolves', 'rejects'] as const)(
    'during the access check, which then %s: nothing runs',
    async (end) => {
      const check = gate<{ tenant: string; role: null }>()
      let done!: Done
      const handler = vi.fn()
      const hooked = await open(
        (host) => {
          host.provide(Auth, {
            check: () => check.pass(),
            ownerOf: () => null,
            recheck: (identity) => identity,
            isGatewayKey: () => false,
          })
          host.hook('onRequest', handler, ALL)
          done = watchDone(host)
        },
        { plugins: {}, services: { provides: [Auth] }, answer: jsonAnswer({}) },
      )
      await sendAndDisconnect(hooked, '/relay', check.reached, done)
      if (end === 'resolves') check.resolve({ tenant: 't', role: null })
      else check.reject(new Error('no'))
      await settle()
      expect(handler).not.toHaveBeenCalled()
      expect(hooked.worker.requestsTo(ECHO)).toEqual([])
      expect(done.count()).toBe(1)
      expect((await done.once).status).toBe(499)
    },
  )

  test.each(['resolves', 'rejects'] as const)(
    'during onRequest, which then %s: no worker gets a request',
    async (end) => {
      const hook = gate()
      let done!: Done
      const hooked = await open(
        (host) => {
          host.hook('onRequest', hook.pass, ALL)
          done = watchDone(host)
        },
        { answer: jsonAnswer({}) },
      )
      await sendAndDisconnect(hooked, '/relay', hook.reached, done)
      if (end === 'resolves') hook.resolve()
      else hook.reject(new Error('no'))
      await settle()
      expect(hooked.worker.requestsTo(ECHO)).toEqual([])
      expect(await hooked.inFlight()).toBe(0)
      expect(done.count()).toBe(1)
    },
  )

  test.each([
    ['relay', 'resolves'],
    ['relay', 'rejects'],
    ['collect', 'resolves'],
    ['collect', 'rejects'],
  ] as const)(
    'during onUpstreamRequest of a %s, which then %s: no worker gets a request',
    async (way, end) => {
      const hook = gate()
      let done!: Done
      const hooked = await open(
        (host) => {
          host.hook('onUpstreamRequest', hook.pass, ALL)
          done = watchDone(host)
          host.route(
            route('/own', async (ctx) => {
              if (way === 'relay') host.upstream.relay(ctx, TO_ECHO)
              else ctx.json(200, (await collectResponse(host.upstream, ctx, TO_ECHO)).json())
            }),
          )
        },
        { answer: jsonAnswer({}) },
      )
      await sendAndDisconnect(hooked, '/own', hook.reached, done)
      if (end === 'resolves') hook.resolve()
      else hook.reject(new Error('no'))
      await settle()
      expect(hooked.worker.requestsTo(ECHO)).toEqual([])
      expect(await hooked.inFlight()).toBe(0)
      expect(done.count()).toBe(1)
    },
  )

  test.each(['relay', 'collect'] as const)(
    'before the handler calls %s: no worker gets a request',
    async (way) => {
      const work = gate()
      let done!: Done
      const after = gate()
      const hooked = await open(
        (host) => {
          done = watchDone(host)
          host.route(
            route('/own', async (ctx) => {
              await work.pass()
              try {
                if (way === 'relay') host.upstream.relay(ctx, TO_ECHO)
                else await collectResponse(host.upstream, ctx, TO_ECHO)
              } finally {
                after.pass()
              }
            }),
          )
        },
        { answer: jsonAnswer({}) },
      )
      await sendAndDisconnect(hooked, '/own', work.reached, done)
      work.resolve()
      await after.reached
      await settle()
      expect(hooked.worker.requestsTo(ECHO)).toEqual([])
      expect(await hooked.inFlight()).toBe(0)
    },
  )

  test('during a collect: the worker request is aborted, and the handler ends', async () => {
    let done!: Done
    const ended = gate()
    const hooked = await open(
      (host) => {
        done = watchDone(host)
        host.route(
          route('/own', async (ctx) => {
            try {
              await collectResponse(host.upstream, ctx, TO_ECHO)
            } finally {
              ended.pass()
            }
          }),
        )
      },
      { answer: hangAnswer() },
    )
    await sendAndDisconnect(hooked, '/own', hooked.worker.received(ECHO), done)
    await ended.reached
    await hooked.worker.requestsTo(ECHO)[0].closed
    expect(await hooked.inFlight()).toBe(0)
    expect(done.count()).toBe(1)
  })

  test('while onResponse delays the head: the worker request is aborted, nothing is sent', async () => {
    const hook = gate()
    let done!: Done
    const hooked = await open(
      (host) => {
        host.hook('onResponse', hook.pass, ALL)
        done = watchDone(host)
      },
      { answer: sseAnswer(['1', { hang: true }]) },
    )
    await sendAndDisconnect(hooked, '/relay', hook.reached, done)
    await hooked.worker.requestsTo(ECHO)[0].closed
    hook.resolve()
    await settle()
    expect((await done.once).bytesOut).toBe(0)
    expect(await hooked.inFlight()).toBe(0)
  })

  test('notifies every abort listener, also if one throws', async () => {
    const notified = gate()
    const ready = gate()
    let done!: Done
    const hooked = await open((host) => {
      done = watchDone(host)
      host.route(
        route('/own', (ctx) => {
          ctx.onAbort(() => {
            throw new Error('careless')
          })
          ctx.onAbort(() => void notified.pass())
          ready.pass()
        }),
      )
    })
    await sendAndDisconnect(hooked, '/own', ready.reached, done)
    await notified.reached
  })
})

describe('a response sent by the handler itself', () => {
  test('ends the relay under it: the worker request is aborted', async () => {
    const hooked = await open(
      (host) => {
        host.route(
          route('/own', async (ctx) => {
            host.upstream.relay(ctx, TO_ECHO)
            await hooked.worker.received(ECHO)
            ctx.json(200, { own: true })
          }),
        )
      },
      { answer: hangAnswer() },
    )
    const reply = await fetch(`${hooked.gateway.url}/own`, { method: 'POST', body: '{}' })
    expect(await reply.json()).toEqual({ own: true })
    await hooked.worker.requestsTo(ECHO)[0].closed
    expect(await hooked.inFlight()).toBe(0)
  })

  test('keeps the bytes of a large body that is still being sent to the worker', async () => {
    const large = Buffer.alloc(200_000, 'a')
    const hooked = await open(
      (host) => {
        host.route(
          route('/own', async (ctx) => {
            if (ctx.query === 'plain') {
              ctx.json(200, {})
              return
            }
            collectResponse(host.upstream, ctx, TO_ECHO).catch(() => {})
            ctx.json(200, {})
          }),
        )
      },
      { answer: jsonAnswer({}) },
    )
    const send = (query: string, body: Buffer) =>
      fetch(`${hooked.gateway.url}/own${query}`, { method: 'POST', body })
    for (let turn = 0; turn < 5; turn++) {
      const first = send('', large)
      const others = [1, 2, 3].map(() => send('?plain', Buffer.alloc(200_000, 'b')))
      await Promise.all([first, ...others])
    }
    for (let nth = 1; nth <= 5; nth++)
      expect((await hooked.worker.received(ECHO, nth)).body.equals(large)).toBe(true)
  })
})

test.each([
  ['in a line', 'data: {"half'],
  ['after a line', 'data: {"half"}\n'],
])('a stream that stops %s of an event gets its error as an event of its own', async (_case, torn) => {
  const hooked = await open(() => {}, {
    answer: streamAnswer(['data: 1\n\n', torn, { drop: 'close' }], {
      headers: { 'content-type': 'text/event-stream' },
    }),
  })
  const stream = openSse(`${hooked.gateway.url}/relay`, { body: {} })
  await stream.done
  const last = stream.events.at(-1)?.data ?? ''
  expect(JSON.parse(last)).toMatchObject({ error: { code: 'read_response_body_failed' } })
})

describe('errors while an error is handled', () => {
  test.each([
    [
      'throws',
      () => {
        throw new Error('careless')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('careless')
      },
    ],
    ['gives nothing', () => undefined as never],
    ['resolves with nothing', async () => undefined as never],
  ] as const)('an onError hook that %s: 500, and the process lives', async (_case, hook) => {
    let done!: Done
    const hooked = await open(
      (host) => {
        host.hook('onError', hook, ALL)
        done = watchDone(host)
      },
      { answer: dropAnswer() },
    )
    for (const _turn of [1, 2]) {
      const reply = await hooked.relay()
      expect(reply.status).toBe(500)
      expect(await reply.json()).toMatchObject({ error: { code: 'internal_error' } })
    }
    expect(done.count()).toBe(2)
  })

  test('an onError hook runs once, even if the handler fails twice', async () => {
    const hook = vi.fn(async (_ctx: RequestContext, error) => {
      await wait(10)
      return error
    })
    const hooked = await open((host) => {
      host.hook('onError', hook, ALL)
      host.route(
        route('/own', (ctx) => {
          ctx.fail(new Error('first'))
          throw new Error('second')
        }),
      )
    })
    expect((await fetch(`${hooked.gateway.url}/own`, { method: 'POST' })).status).toBe(500)
    expect(hook).toHaveBeenCalledTimes(1)
  })

  test('a body rejected with 413 midway never runs, even with a slow onError hook and a short rest', async () => {
    const handler = vi.fn()
    const onError = vi.fn(async (_ctx: RequestContext, error) => {
      await wait(60)
      return error
    })
    const hooked = await open(
      (host) => {
        host.hook('onError', onError, ALL)
        host.hook('onRequest', handler, ALL)
      },
      { kernel: { http: { maxBodyBytes: 100 } } },
    )
    const chunk = (length: number) => `${length.toString(16)}\r\n${'x'.repeat(length)}\r\n`
    const head = 'POST /relay HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n'
    const reply = await sendRaw(hooked.gateway.port, [head, chunk(90), chunk(50), `${chunk(5)}0\r\n\r\n`])
    expect(reply.statuses).toEqual([413])
    expect(reply.closed).toBe(true)
    expect(handler).not.toHaveBeenCalled()
    expect(onError).toHaveBeenCalledTimes(1)
  })

  test('a response that reaches its timeout while onResponse delays the head is 504, and the hook has no further effect', async () => {
    const hook = gate()
    const hooked = await open(
      (host) => {
        host.hook('onResponse', hook.pass, ALL)
        host.hook(
          'onError',
          async (_ctx, error) => {
            hook.resolve()
            await wait(20)
            return error
          },
          ALL,
        )
      },
      { answer: sseAnswer(['1', { hang: true }]), kernel: { upstream: { requestMs: 300 } } },
    )
    const reply = await hooked.relay()
    expect(reply.status).toBe(504)
    expect(await reply.json()).toMatchObject({ error: { code: 'stream_timeout' } })
    expect(await hooked.inFlight()).toBe(0)
  })

  test.each([
    ['a whole answer', jsonAnswer({})],
    ['a stream', sseAnswer(['1'])],
  ] as const)('what onResponse leaves unusable on %s is 500, at once and later', async (_case, answer) => {
    let isAsync = false
    let spoil: (response: { status: number; headers: string[]; body: Buffer | null }) => void = () => {}
    const hooked = await open(
      (host) => {
        host.hook(
          'onResponse',
          (_ctx, response) => {
            if (!isAsync) return spoil(response)
            return Promise.resolve().then(() => spoil(response))
          },
          ALL,
        )
      },
      { answer },
    )
    for (isAsync of [false, true]) {
      spoil = (response) => response.headers.push('x-count', 1 as unknown as string)
      expect((await hooked.relay()).status).toBe(500)
      spoil = (response) => {
        response.status = 42
      }
      expect((await hooked.relay()).status).toBe(500)
      spoil = () => {}
      expect((await hooked.relay()).status).toBe(200)
    }
    expect(await hooked.inFlight()).toBe(0)
  })

  test('an exception of a drain listener ends its own stream with an error event', async () => {
    const hooked = await open((host) => {
      host.route(
        route('/own', (ctx) => {
          const stream = ctx.sse()
          stream.write(`data: ${'x'.repeat(100_000)}\n\n`)
          ctx.flow.whenReleased(() => {
            throw new Error('careless')
          })
        }),
      )
    })
    const stream = openSse(`${hooked.gateway.url}/own`, { body: {} })
    await stream.done
    expect(stream.isWhole).toBe(false)
    expect(JSON.parse(stream.events[1].data)).toMatchObject({ error: { code: 'internal_error' } })
  })
})

describe('HEAD on a relaying route', () => {
  const head = 'HEAD /own HTTP/1.1\r\nhost: x\r\n\r\n'
  const get = 'GET /own HTTP/1.1\r\nhost: x\r\n\r\n'
  const toEcho = (host: Host) => host.route(route('/own', (ctx) => host.upstream.relay(ctx, TO_ECHO), 'GET'))

  test.each([
    ['whole', jsonAnswer({ a: 1 }), 200],
    ['streamed', streamAnswer(['{"a":', '1}'], { headers: { 'content-type': 'application/json' } }), 200],
    ['an endless event stream', sseAnswer(['1', { hang: true }]), 200],
    ['an error', dropAnswer(), 502],
  ] as const)(
    'an answer that is %s is its head alone, and the connection goes on',
    async (_case, answer, status) => {
      const hooked = await open(toEcho, { answer, kernel: { retry: { maxAttempts: 1 } } })
      hooked.worker.once(ECHO, answer)
      hooked.worker.script(ECHO, jsonAnswer({ next: true }))
      const reply = await sendRaw(hooked.gateway.port, [head, get], {
        betweenPartsMs: 150,
        until: (text) => text.includes('"next"'),
      })
      expect(reply.statuses).toEqual([status, 200])
      expect(reply.text.split('\r\n\r\n')[1]).toMatch(/^HTTP\/1\.1 200/)
      expect(await hooked.inFlight()).toBe(0)
    },
  )
})

test('a compressed event stream gets no comment lines', async () => {
  const bytes = gzipSync('data: x\n\n')
  const { relay } = await open(() => {}, {
    kernel: { http: { heartbeatMs: 500 } },
    answer: streamAnswer([{ waitMs: 1_300 }, bytes], {
      headers: { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' },
    }),
  })
  expect(await (await relay()).text()).toBe('data: x\n\n')
})

test('a response without a body stays without one', async () => {
  const { relay } = await open(() => {}, { answer: rawAnswer('', { status: 204 }) })
  const { status, headers } = await relay()
  expect([status, headers.get('content-length'), headers.get('transfer-encoding')]).toEqual([204, null, null])
})
