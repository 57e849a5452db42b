/** Hooks on the response path: complete events, responses of handlers, bodies on demand, switches at run time. */
import { afterEach, describe, expect, test } from 'vitest'
import { apiErrorFormat, type HookSwitch, type Host, type RouteDefinition } from '#kernel'
import { type HookedGateway, type HookedOptions, openHooked } from '../support/hooked-gateway.ts'
import { dropAnswer, jsonAnswer, sseAnswer, streamAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'

const ECHO = 'POST /echo'
const ALL = { scope: 'all' } as const
const WAYS = ['at once', 'later'] as const

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

async function open(register: (host: Host) => void, options?: HookedOptions): Promise<HookedGateway> {
  const hooked = await openHooked(register, { answer: jsonAnswer({ from: 'worker' }), ...options })
  cleanups.push(() => hooked.close())
  return hooked
}

function by<T>(way: (typeof WAYS)[number], run: () => T): T | Promise<T> {
  return way === 'at once' ? run() : new Promise((resolve) => setImmediate(resolve)).then(run)
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

const post = (hooked: HookedGateway, path: string) =>
  fetch(`${hooked.gateway.url}${path}`, { method: 'POST', body: '{}' })

describe.each(WAYS)('onEvents, %s', (way) => {
  test('receives complete events in order, however the worker splits them, and a last call at the end', async () => {
    const seen: string[] = []
    let ends = 0
    const hooked = await open(
      (host) => {
        host.hook(
          'onEvents',
          (_ctx, events, isLast) =>
            by(way, () => {
              if (isLast) ends++
              else seen.push(events.toString())
              return isLast ? Buffer.from('data: last\n\n') : Buffer.from(events.toString().toUpperCase())
            }),
          ALL,
        )
      },
      {
        answer: streamAnswer(['data: a\n', { waitMs: 5 }, '\ndata: b\n\nda', { waitMs: 5 }, 'ta: c\n\n'], {
          headers: { 'content-type': 'text/event-stream' },
        }),
      },
    )
    const stream = openSse(`${hooked.gateway.url}/relay`, { body: { stream: true } })
    await stream.done
    expect(seen.join('')).toBe('data: a\n\ndata: b\n\ndata: c\n\n')
    expect(seen.every((events) => events.endsWith('\n\n'))).toBe(true)
    expect(stream.text()).toBe('DATA: A\n\nDATA: B\n\nDATA: C\n\ndata: last\n\n')
    expect([ends, stream.isWhole]).toEqual([1, true])
  })

  test('events of a stream that breaks reach the client before the error event', async () => {
    const hooked = await open((host) => host.hook('onEvents', (_ctx, events) => by(way, () => events), ALL), {
      answer: sseAnswer(['1', '2', { drop: 'close' }]),
    })
    const stream = openSse(`${hooked.gateway.url}/relay`, { body: { stream: true } })
    await stream.done
    const datas = stream.events.map(({ data }) => data)
    expect(datas.slice(0, 2)).toEqual(['1', '2'])
    expect(JSON.parse(datas[2])).toMatchObject({ error: { code: 'read_response_body_failed' } })
    expect(datas).toHaveLength(3)
    expect(await hooked.inFlight()).toBe(0)
  })

  test('a failing hook ends the stream with an error event and aborts the worker request', async () => {
    let calls = 0
    const hooked = await open(
      (host) =>
        host.hook(
          'onEvents',
          (_ctx, events) =>
            by(way, () => {
              if (++calls > 1) throw new Error('careless')
              return events
            }),
          ALL,
        ),
      { answer: sseAnswer(['1', { waitMs: 30 }, '2', { hang: true }]) },
    )
    const stream = openSse(`${hooked.gateway.url}/relay`, { body: { stream: true } })
    await stream.done
    expect(stream.events[0].data).toBe('1')
    expect(JSON.parse(stream.events[1].data)).toMatchObject({ error: { code: 'internal_error' } })
    await hooked.worker.requestsTo(ECHO)[0].closed
    expect(await hooked.inFlight()).toBe(0)
  })

  test('applies to a stream written by a handler too', async () => {
    const hooked = await open((host) => {
      host.hook(
        'onEvents',
        (_ctx, events) => by(way, () => Buffer.from(events.toString().toUpperCase())),
        ALL,
      )
      host.route(
        ownRoute('/own', (ctx) => {
          const stream = ctx.sse()
          stream.write('data: a\n\n')
          stream.end('data: b\n\n')
        }),
      )
    })
    expect(await (await post(hooked, '/own')).text()).toBe('DATA: A\n\nDATA: B\n\n')
  })
})

test('a slow onEvents pauses the worker, and every event arrives in order', async () => {
  const count = 400
  const events = Array.from({ length: count }, (_, index) => `${index} ${'x'.repeat(4_000)}`)
  const hooked = await open(
    (host) =>
      host.hook('onEvents', (_ctx, bytes) => new Promise((resolve) => setImmediate(resolve, bytes)), ALL),
    { answer: sseAnswer(events) },
  )
  const stream = openSse(`${hooked.gateway.url}/relay`, { body: { stream: true } })
  await stream.done
  expect(stream.events.map(({ data }) => data)).toEqual(events)
  expect(stream.isWhole).toBe(true)
})

test('an event larger than the limit ends the stream with an error', async () => {
  const hooked = await open((host) => host.hook('onEvents', (_ctx, events) => events, ALL), {
    answer: sseAnswer(['1', 'x'.repeat(1_200_000), '2']),
  })
  const stream = openSse(`${hooked.gateway.url}/relay`, { body: { stream: true } })
  await stream.done
  expect(stream.events[0].data).toBe('1')
  expect(JSON.parse(stream.events[1].data)).toMatchObject({ error: { code: 'event_too_large' } })
})

describe.each(WAYS)('responses of handlers, %s', (way) => {
  test('onResponse runs for responses and errors of handlers, not for a response of an onRequest hook', async () => {
    let refuses = false
    const hooked = await open((host) => {
      host.hook('onRequest', () => (refuses ? { status: 403, body: 'no' } : undefined))
      host.hook('onResponse', (_ctx, response) => by(way, () => void response.headers.push('x-seen', '1')))
      host.route(ownRoute('/fine', (ctx) => ctx.json(200, { fine: true })))
      host.route(
        ownRoute('/broken', () => {
          throw new Error('broken')
        }),
      )
    })
    const fine = await post(hooked, '/fine')
    expect([fine.status, fine.headers.get('x-seen'), await fine.json()]).toEqual([200, '1', { fine: true }])
    const broken = await post(hooked, '/broken')
    expect([broken.status, broken.headers.get('x-seen')]).toEqual([500, '1'])
    refuses = true
    const refused = await post(hooked, '/fine')
    expect([refused.status, refused.headers.get('x-seen'), await refused.text()]).toEqual([403, null, 'no'])
  })

  test('an onResponse hook that fails on an error response results in a plain 500', async () => {
    const hooked = await open((host) => {
      host.hook('onResponse', () =>
        by(way, () => {
          throw new Error('careless')
        }),
      )
      host.route(
        ownRoute('/broken', () => {
          throw new Error('broken')
        }),
      )
    })
    expect((await post(hooked, '/broken')).status).toBe(500)
  })

  test('onError may return a response instead of the error', async () => {
    const hooked = await open(
      (host) =>
        host.hook(
          'onError',
          (_ctx, error) => by(way, () => ({ status: 418, contentType: 'text/plain', body: error.code })),
          ALL,
        ),
      { answer: dropAnswer() },
    )
    const reply = await hooked.relay()
    expect([reply.status, await reply.text()]).toEqual([418, 'call_upstream_request_error'])
  })
})

describe('body size limit of onResponse', () => {
  const body = JSON.stringify({ text: 'x'.repeat(50_000) })
  const chunked = streamAnswer([body.slice(0, 30_000), { waitMs: 5 }, body.slice(30_000)], {
    headers: { 'content-type': 'application/json' },
  })

  async function shownTo(maxResponseBytes: number): Promise<[number | null, boolean]> {
    let shown: number | null = -1
    const hooked = await open(
      (host) =>
        host.hook(
          'onResponse',
          (_ctx, response) => {
            shown = response.body?.length ?? null
          },
          { ...ALL, maxResponseBytes },
        ),
      { answer: chunked },
    )
    const text = await (await hooked.relay()).text()
    return [shown, text === body]
  }

  test('a body without content-length is buffered up to the limit', async () => {
    expect(await shownTo(100_000)).toEqual([body.length, true])
  })

  test('a longer body is streamed completely, and not passed to the hook', async () => {
    expect(await shownTo(40_000)).toEqual([null, true])
  })

  test('with 0 nothing is buffered', async () => {
    expect(await shownTo(0)).toEqual([null, true])
  })
})

test('a hook is switched on and off at run time; a running request keeps the state it started with', async () => {
  let theSwitch: HookSwitch | null = null
  const hooked = await open(
    (host) => {
      theSwitch = host.hook('onEvents', (_ctx, events) => Buffer.from(events.toString().toUpperCase()), {
        ...ALL,
        startsOff: true,
      })
    },
    { answer: sseAnswer(['a', { waitMs: 60 }, 'b']) },
  )
  const before = openSse(`${hooked.gateway.url}/relay`, { body: { stream: true } })
  await hooked.worker.received(ECHO)
  const update = theSwitch as unknown as HookSwitch
  update.update({ isOn: true })
  const during = openSse(`${hooked.gateway.url}/relay`, { body: { stream: true } })
  await before.done
  await during.done
  update.update({ isOn: false })
  const after = openSse(`${hooked.gateway.url}/relay`, { body: { stream: true } })
  await after.done
  expect([before.text(), during.text(), after.text()]).toEqual([
    'data: a\n\ndata: b\n\n',
    'DATA: A\n\nDATA: B\n\n',
    'data: a\n\ndata: b\n\n',
  ])
})

test('a hook that reads all headers receives them all; headers that it sets, adds and removes apply to the worker request', async () => {
  let seen: string[] = []
  const hooked = await open((host) => {
    host.hook(
      'onRequest',
      (ctx) => {
        seen = [...ctx.requestHeaders]
        ctx.changeHeader('set', 'X-House', 'one')
        ctx.changeHeader('add', 'x-house', 'two')
        ctx.changeHeader('remove', 'traceparent', '')
        ctx.changeHeader('set', 'content-length', '1')
      },
      { ...ALL, readsAllHeaders: true },
    )
  })
  await hooked.relay({}, { headers: { 'x-mine': 'a', 'x-house': 'theirs', traceparent: 'x' } })
  expect(seen[seen.indexOf('x-mine') + 1]).toBe('a')
  const [request] = hooked.worker.requestsTo(ECHO)
  const house = request.rawHeaders.filter(([name]) => name === 'x-house').map(([, value]) => value)
  expect(house).toEqual(['one', 'two'])
  expect(request.header('traceparent')).toBeUndefined()
  expect(request.header('x-mine')).toBeUndefined()
  expect(request.body.toString()).toBe('{}')
})

test('hooks select routes', async () => {
  const seen: string[] = []
  const hooked = await open((host) => {
    host.hook('onRequest', (ctx) => void seen.push(ctx.path), {
      ...ALL,
      routes: (route) => route.path === '/two',
    })
    host.route(ownRoute('/one', (ctx) => ctx.text(200, '')))
    host.route(ownRoute('/two', (ctx) => ctx.text(200, '')))
  })
  await post(hooked, '/one')
  await post(hooked, '/two')
  expect(seen).toEqual(['/two'])
})

test('clientAddress is the address of the connection', async () => {
  const hooked = await open((host) => {
    host.route(ownRoute('/address', (ctx) => ctx.text(200, ctx.clientAddress)))
  })
  expect(await (await post(hooked, '/address')).text()).toBe('127.0.0.1')
})
