/** The seven hooks for plugin authors: effect, order, and routes. */
import { afterEach, describe, expect, test } from 'vitest'
import {
  apiErrorFormat,
  defineErrors,
  type HookName,
  type HookOptions,
  type HookSignatures,
  type Host,
  type RequestContext,
  type RouteDefinition,
} from '#kernel'
import { type HookedGateway, type HookedOptions, openHooked, plugin } from '../support/hooked-gateway.ts'
import {
  type Answer,
  dropAnswer,
  hangAnswer,
  jsonAnswer,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { textUntilCut } from '../support/text-until-cut.ts'

const errors = defineErrors('hooks test', {
  busy: { kind: 'unavailable', source: 'gateway', text: () => 'try again' },
})
const ECHO = 'POST /echo'
const ALL = { scope: 'all' } as const
/** Each hook that may be asynchronous is tested both ways. */
const WAYS = ['at once', 'later'] as const
type Way = (typeof WAYS)[number]

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

async function open(register: (host: Host) => void, options?: HookedOptions): Promise<HookedGateway> {
  const hooked = await openHooked(register, { answer: jsonAnswer({ from: 'worker' }), ...options })
  cleanups.push(() => hooked.close())
  return hooked
}

/** The result, or a promise of it. */
function by<T>(way: Way, run: () => T): T | Promise<T> {
  return way === 'at once' ? run() : Promise.resolve().then(run)
}

function careless(): never {
  throw new Error('careless')
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

async function codeOf(reply: Response): Promise<[number, string]> {
  return [reply.status, ((await reply.json()) as { error: { code: string } }).error.code]
}

describe.each(WAYS)('onRequest, %s', (way) => {
  test('a returned response replaces the handler: no worker gets a request, later hooks do not run', async () => {
    let later = 0
    const hooked = await open((host) => {
      host.hook(
        'onRequest',
        () =>
          by(way, () => ({
            status: 429,
            contentType: 'text/plain',
            headers: ['retry-after', '7'],
            body: 'slow down',
          })),
        ALL,
      )
      host.hook('onRequest', () => void later++, { ...ALL, order: 'late' })
    })
    const reply = await hooked.relay()
    expect([reply.status, await reply.text(), reply.headers.get('retry-after')]).toEqual([
      429,
      'slow down',
      '7',
    ])
    expect(hooked.worker.requestsTo(ECHO)).toEqual([])
    expect(later).toBe(0)
  })

  test('without a result the handler runs, with the replaced body', async () => {
    const hooked = await open((host) => {
      host.hook('onRequest', (ctx) => by(way, () => ctx.setBody(Buffer.from('{"model":"other"}'))), ALL)
    })
    expect((await hooked.relay()).status).toBe(200)
    expect(hooked.worker.requestsTo(ECHO)[0].body.toString()).toBe('{"model":"other"}')
  })

  test('a failing hook is 500, and the next request is served', async () => {
    let fails = true
    const hooked = await open((host) => {
      host.hook('onRequest', () => by(way, () => (fails ? careless() : undefined)), ALL)
    })
    expect(await codeOf(await hooked.relay())).toEqual([500, 'internal_error'])
    fails = false
    expect((await hooked.relay()).status).toBe(200)
  })
})

describe('onPick', () => {
  test('picks the worker, and receives the model', async () => {
    const other = await startScriptedWorker()
    cleanups.push(() => other.close())
    other.script(ECHO, jsonAnswer({ from: 'other' }))
    let choice: number | undefined
    const models: string[] = []
    const hooked = await open(
      (host) => {
        host.hook(
          'onPick',
          (_ctx, model) => {
            models.push(model)
            return choice
          },
          ALL,
        )
      },
      { others: [{ url: other.url }], kernel: { policy: 'round_robin' } },
    )
    for (choice of [1, 1, 0, 0, 1]) {
      const from = choice === 1 ? 'other' : 'worker'
      expect(await (await hooked.relay({ model: 'm' })).json()).toEqual({ from })
    }
    expect(new Set(models)).toEqual(new Set(['m']))
  })

  test('a throwing hook is 500, and nothing stays in flight', async () => {
    const hooked = await open((host) => host.hook('onPick', careless, ALL))
    expect(await codeOf(await hooked.relay())).toEqual([500, 'internal_error'])
    expect(await hooked.inFlight()).toBe(0)
  })
})

describe.each(WAYS)('onUpstreamRequest, %s', (way) => {
  test('changes the headers for the worker, and sees the worker', async () => {
    const urls: string[] = []
    const hooked = await open((host) => {
      host.hook(
        'onUpstreamRequest',
        (_ctx, { worker, headers }) =>
          by(way, () => {
            urls.push(worker.url)
            headers.splice(headers.indexOf('x-request-id'), 2)
            headers.push('x-added', '1')
          }),
        ALL,
      )
    })
    await hooked.relay()
    const [request] = hooked.worker.requestsTo(ECHO)
    expect([request.header('x-added'), request.header('x-request-id')]).toEqual(['1', undefined])
    expect(urls).toEqual([hooked.worker.url])
  })

  test('a failing hook is 500, and nothing stays in flight', async () => {
    const hooked = await open((host) => host.hook('onUpstreamRequest', () => by(way, careless), ALL))
    expect(await codeOf(await hooked.relay())).toEqual([500, 'internal_error'])
    expect(hooked.worker.requestsTo(ECHO)).toEqual([])
    expect(await hooked.inFlight()).toBe(0)
  })
})

describe.each(WAYS)('onResponse, %s', (way) => {
  test('changes status, headers and body of a JSON response', async () => {
    const hooked = await open((host) => {
      host.hook(
        'onResponse',
        (_ctx, response) =>
          by(way, () => {
            expect(response.body?.toString()).toBe('{"from":"worker"}')
            response.status = 203
            response.headers = [...response.headers, 'x-added', '1']
            response.body = Buffer.from('{"from":"hook"}')
          }),
        ALL,
      )
    })
    const reply = await hooked.relay()
    expect([reply.status, reply.headers.get('x-added'), await reply.json()]).toEqual([
      203,
      '1',
      { from: 'hook' },
    ])
    expect(reply.headers.get('content-type')).toBe('application/json')
  })

  test('changes status and headers of a stream, and does not see its body', async () => {
    const hooked = await open(
      (host) => {
        host.hook(
          'onResponse',
          (_ctx, response) =>
            by(way, () => {
              expect(response.body).toBeNull()
              response.status = 203
              response.headers.push('x-added', '1')
            }),
          ALL,
        )
      },
      { answer: sseAnswer(['1', '2', '3']) },
    )
    const stream = openSse(`${hooked.gateway.url}/relay`, { body: { stream: true } })
    await stream.done
    expect([stream.status, stream.headers.get('x-added')]).toEqual([203, '1'])
    expect(stream.events.map(({ data }) => data)).toEqual(['1', '2', '3'])
    expect(stream.isWhole).toBe(true)
  })

  test.each([
    ['JSON', jsonAnswer({})],
    ['a stream', sseAnswer(['1', { hang: true }])],
  ] as const)(
    'one that fails on %s is 500 before any byte, and nothing stays in flight',
    async (_case, answer) => {
      const hooked = await open((host) => host.hook('onResponse', () => by(way, careless), ALL), { answer })
      expect(await codeOf(await hooked.relay())).toEqual([500, 'internal_error'])
      expect(await hooked.inFlight()).toBe(0)
    },
  )

  test('sees the request body, also a large one', async () => {
    const lengths: number[] = []
    const hooked = await open(
      (host) => {
        const note = (ctx: RequestContext) => void lengths.push(ctx.bodyBytes.length)
        host.hook('onResponse', (ctx) => by(way, () => note(ctx)), ALL)
        host.hook('onDone', note, ALL)
      },
      { answer: sseAnswer(['1']) },
    )
    await (await hooked.relay({ model: 'm', text: 'x'.repeat(100_000) })).text()
    expect(lengths).toHaveLength(2)
    expect(Math.min(...lengths)).toBeGreaterThan(100_000)
  })
})

describe.each(WAYS)('onError, %s', (way) => {
  test('changes the error that the client receives', async () => {
    const codes: string[] = []
    const hooked = await open(
      (host) => {
        host.hook(
          'onError',
          (_ctx, error) =>
            by(way, () => {
              codes.push(error.code)
              return errors.busy()
            }),
          ALL,
        )
      },
      { answer: dropAnswer() },
    )
    const reply = await hooked.relay()
    expect(await codeOf(reply.clone())).toEqual([503, 'busy'])
    expect(await reply.json()).toMatchObject({ error: { message: 'try again' } })
    expect(reply.headers.get('x-weir-error-code')).toBe('busy')
    expect(codes).toEqual(['call_upstream_request_error'])
  })

  test('hooks run in sequence, each with the error of the previous one', async () => {
    const seen: string[] = []
    const note = (name: string): HookSignatures['onError'] => {
      return (_ctx, error) =>
        by(way, () => {
          seen.push(`${name} ${error.code}`)
          return error
        })
    }
    const hooked = await open(
      (host) => {
        host.hook('onError', note('first'), ALL)
        host.hook('onError', note('second'), ALL)
      },
      { answer: dropAnswer() },
    )
    expect((await hooked.relay()).status).toBe(502)
    expect(seen).toEqual(['first call_upstream_request_error', 'second call_upstream_request_error'])
  })
})

describe('onDone', () => {
  const ends: [string, Answer, number, string | null][] = [
    ['success', jsonAnswer({}), 200, null],
    ['a stream', sseAnswer(['1', '2']), 200, null],
    ['an error of the worker', dropAnswer(), 502, 'call_upstream_request_error'],
    ['a stream that breaks', sseAnswer(['1', { drop: 'close' }]), 200, 'read_response_body_failed'],
  ]
  test.each(ends)(
    'runs once after %s, with status, size and times of the response',
    async (_case, answer, status, code) => {
      const seen: RequestContext[] = []
      const hooked = await open((host) => host.hook('onDone', (ctx) => void seen.push(ctx), ALL), { answer })
      const { length } = await textUntilCut(await hooked.relay())
      await expect.poll(() => seen.length).toBe(1)
      expect(seen[0]).toMatchObject({
        status,
        errorCode: code,
        isDone: true,
        isAborted: false,
        bytesOut: length,
      })
      expect(seen[0].firstByteAtMs).toBeGreaterThan(seen[0].startedAtMs)
    },
  )

  test('runs once after a disconnect, when the worker request is already closed', async () => {
    const seen: [boolean, number, number][] = []
    const hooked = await open(
      (host) => {
        host.hook(
          'onDone',
          (ctx) =>
            void seen.push([ctx.isAborted, ctx.status, host.balance.inFlight(host.balance.workers[0].slot)]),
          ALL,
        )
      },
      { answer: hangAnswer() },
    )
    const client = openSse(`${hooked.gateway.url}/relay`, { body: {} })
    await hooked.worker.received(ECHO)
    client.close()
    await hooked.worker.requestsTo(ECHO)[0].closed
    await expect.poll(() => seen).toEqual([[true, 499, 0]])
  })

  test.each(WAYS)('a failing hook, %s, affects neither other hooks nor the next request', async (way) => {
    let others = 0
    const hooked = await open((host) => {
      host.hook('onDone', () => by(way, careless), ALL)
      host.hook('onDone', () => by(way, () => void others++), ALL)
    })
    expect((await hooked.relay()).status).toBe(200)
    expect((await hooked.relay()).status).toBe(200)
    await expect.poll(() => others).toBe(2)
  })
})

describe('order and scope', () => {
  const HOOKS: readonly HookName[] = [
    'onRequest',
    'onPick',
    'onUpstreamRequest',
    'onResponse',
    'onError',
    'onDone',
  ]

  /** Records each call and changes nothing. */
  function noteAll(host: Host, label: string, calls: string[], options?: HookOptions): void {
    const note = (hook: HookName) => void calls.push(`${hook} ${label}`)
    host.hook('onRequest', () => note('onRequest'), options)
    host.hook('onPick', () => note('onPick'), options)
    host.hook('onUpstreamRequest', () => note('onUpstreamRequest'), options)
    host.hook('onResponse', () => note('onResponse'), options)
    host.hook(
      'onError',
      (_ctx, error) => {
        note('onError')
        return error
      },
      options,
    )
    host.hook('onDone', () => note('onDone'), options)
  }

  test('hooks run in request order, early ones first and late ones last, independent of registration order', async () => {
    const calls: string[] = []
    const hooked = await open(
      (host) => {
        noteAll(host, 'late', calls, { ...ALL, order: 'late' })
        noteAll(host, 'plain', calls, ALL)
      },
      {
        own: [plugin('second', (host) => noteAll(host, 'early', calls, { ...ALL, order: 'early' }))],
        answer: sseAnswer(['1', { drop: 'close' }]),
      },
    )
    await textUntilCut(await hooked.relay())
    await expect
      .poll(() => calls)
      .toEqual(HOOKS.flatMap((name) => ['early', 'plain', 'late'].map((order) => `${name} ${order}`)))
  })

  test('own hooks run on routes of their plugin only, hooks with scope all on every route', async () => {
    const calls: string[] = []
    const hooked = await open(
      (host) => {
        host.route(ownRoute('/mine', (ctx) => ctx.json(200, {})))
        host.hook('onRequest', () => void calls.push('own'))
      },
      {
        own: [
          plugin('second', (host) => {
            host.route(ownRoute('/theirs', (ctx) => ctx.json(200, {})))
            host.hook('onRequest', () => void calls.push('all'), ALL)
          }),
        ],
      },
    )
    await post(hooked, '/mine')
    expect(calls.splice(0)).toEqual(['own', 'all'])
    await post(hooked, '/theirs')
    await hooked.relay()
    expect(calls).toEqual(['all', 'all'])
  })

  test('a slot keeps a value per request from one hook to the next', async () => {
    const seen: unknown[] = []
    const hooked = await open((host) => {
      const slot = host.slot<string>()
      host.hook('onRequest', (ctx) => slot.set(ctx, ctx.requestId), ALL)
      host.hook('onDone', (ctx) => void seen.push([slot.get(ctx) === ctx.requestId, slot.get(ctx)]), ALL)
    })
    await Promise.all(['a', 'b'].map((id) => hooked.relay({}, { headers: { 'x-request-id': id } })))
    await expect.poll(() => seen.map(String).sort()).toEqual(['true,a', 'true,b'])
  })
})
