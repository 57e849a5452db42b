/** The relay between real sockets: what the worker receives, what the client receives, and failures on either side. */
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { bestOf } from '../support/best-of.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  bytesAnswer,
  dropAnswer,
  hangAnswer,
  jsonAnswer,
  rawAnswer,
  type Script,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { type StaticWorker, type StaticWorkers, staticWorkers } from '../support/static-workers.ts'

const ECHO = 'POST /echo'
let cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.reverse()) await clean()
  cleanups = []
})

interface Setup {
  gateway: TestGateway
  worker: ScriptedWorker
  workers: StaticWorkers
}

async function setup(
  answer: Script,
  options: {
    entry?: Partial<StaticWorker>
    kernel?: Record<string, unknown>
    auth?: Record<string, unknown>
  } = {},
): Promise<Setup> {
  const worker = await startScriptedWorker()
  cleanups.push(() => worker.close())
  worker.script(ECHO, answer)
  const workers = staticWorkers([{ url: worker.url, ...options.entry }])
  const gateway = await startGateway({
    own: [workers.plugin],
    plugins: { auth: options.auth ?? {} },
    kernel: options.kernel,
  })
  cleanups.push(() => gateway.stop())
  return { gateway, worker, workers }
}

const send = (gateway: TestGateway, body: unknown = { model: 'm' }, headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}/relay`, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

const errorCode = async (reply: Response) => ((await reply.json()) as { error: { code: string } }).error.code

/** In-flight counts decrease shortly after the client sees the end. */
async function idle(workers: StaticWorkers, withinMs = 30_000): Promise<number> {
  const until = performance.now() + withinMs
  const { slot } = workers.balance().workers[0]
  while (workers.balance().inFlight(slot) > 0 && performance.now() < until)
    await new Promise((r) => setImmediate(r))
  return workers.balance().inFlight(slot)
}

describe('requests to the worker', () => {
  test('only allowed headers are forwarded; the body is unchanged', async () => {
    const { gateway, worker } = await setup(jsonAnswer({}))
    const body = '{ "model":"m",  "odd" : [1.0, 1e2] , "text":"\\u00e9" }'
    await send(gateway, body, {
      'x-request-id': 'id-1',
      'x-request-id-extra': 'e',
      'x-correlation-id': 'c',
      traceparent: '00-1-2-01',
      tracestate: 's=1',
      'x-weir-routing-key': 'k',
      cookie: 'secret=1',
      'x-custom': 'no',
      'x-api-key': 'no',
      te: 'trailers',
    })
    const [request] = worker.requestsTo(ECHO)
    expect(request.body.toString()).toBe(body)
    const names = request.rawHeaders.map(([name]) => name.toLowerCase()).sort()
    expect(names).toEqual(
      [
        'content-length',
        'content-type',
        'host',
        'traceparent',
        'tracestate',
        'x-correlation-id',
        'x-request-id',
        'x-request-id-extra',
        'x-weir-routing-key',
      ].sort(),
    )
    expect(request.header('x-request-id')).toBe('id-1')
    expect(request.header('content-type')).toBe('application/json')
  })

  test("the request id and the client's key are forwarded only if listed", async () => {
    const { gateway, worker } = await setup(jsonAnswer({}), {
      kernel: { upstream: { forwardHeaders: ['TraceParent', 'content-type'] } },
    })
    const reply = await send(
      gateway,
      {},
      {
        authorization: 'Bearer mine',
        traceparent: 't',
        'x-request-id': 'id-1',
        'content-type': 'text/plain',
      },
    )
    expect(reply.headers.get('x-request-id')).toBe('id-1')
    const [request] = worker.requestsTo(ECHO)
    expect(request.rawHeaders.map(([name]) => name.toLowerCase()).sort()).toEqual([
      'content-length',
      'content-type',
      'host',
      'traceparent',
    ])
    expect(request.header('content-type')).toBe('application/json')
  })

  test("a worker's own key is sent even if authorization is not forwarded", async () => {
    const { gateway, worker } = await setup(jsonAnswer({}), {
      entry: { apiKey: 'worker-key' },
      kernel: { upstream: { forwardHeaders: [] } },
    })
    await send(gateway, {}, { authorization: 'Bearer mine' })
    expect(worker.requestsTo(ECHO)[0].header('authorization')).toBe('Bearer worker-key')
  })

  test("the worker's key replaces the client's: exactly one Authorization header is sent", async () => {
    const { gateway, worker } = await setup(jsonAnswer({}), {
      entry: { apiKey: 'worker-key' },
      auth: { apiKey: 'gate' },
    })
    await send(gateway, { model: 'm' }, { authorization: 'Bearer gate' })
    const sent = worker
      .requestsTo(ECHO)[0]
      .rawHeaders.filter(([name]) => name.toLowerCase() === 'authorization')
    expect(sent.map(([, value]) => value)).toEqual(['Bearer worker-key'])
  })

  test("the gateway's key is never forwarded; a client's key is, if the worker has none", async () => {
    const keyed = await setup(jsonAnswer({}), { auth: { apiKey: 'gate' } })
    await send(keyed.gateway, { model: 'm' }, { authorization: 'Bearer gate' })
    expect(keyed.worker.requestsTo(ECHO)[0].header('authorization')).toBeUndefined()
    const open = await setup(jsonAnswer({}))
    await send(open.gateway, { model: 'm' }, { authorization: 'Bearer mine' })
    expect(open.worker.requestsTo(ECHO)[0].header('authorization')).toBe('Bearer mine')
  })

  test('an alias is replaced by the canonical id, the rest of the body is unchanged', async () => {
    const { gateway, worker } = await setup(jsonAnswer({}), {
      entry: { models: [{ id: 'real-model', aliases: ['nick'] }] },
    })
    await send(gateway, '{"a" : 1, "model":"nick", "b":[ 2 ]}')
    expect(worker.requestsTo(ECHO)[0].body.toString()).toBe('{"a" : 1, "model":"real-model", "b":[ 2 ]}')
  })
})

describe('responses to the client', () => {
  test('a JSON response keeps status, body and content type', async () => {
    const { gateway } = await setup(
      rawAnswer('{ "a":1 }', {
        status: 201,
        headers: { 'content-type': 'application/json; x=y', etag: '1', 'x-request-id': 'theirs' },
      }),
    )
    const reply = await send(gateway, { model: 'm' }, { 'x-request-id': 'mine' })
    expect([reply.status, await reply.text()]).toEqual([201, '{ "a":1 }'])
    expect(reply.headers.get('content-type')).toBe('application/json; x=y')
    expect(reply.headers.get('etag')).toBe('1')
    expect(reply.headers.get('x-request-id')).toBe('mine')
  })

  test("headers listed in a worker's Connection header are not forwarded", async () => {
    const headers = { connection: 'close, Vary', vary: '1', etag: '2' }
    const { gateway } = await setup(jsonAnswer({}, { headers }))
    const reply = await send(gateway)
    expect([reply.headers.get('vary'), reply.headers.get('etag')]).toEqual([null, '2'])
  })

  test("a worker's 4xx is passed on unchanged", async () => {
    const { gateway } = await setup(jsonAnswer({ error: { message: 'odd' } }, { status: 422 }))
    const reply = await send(gateway)
    expect([reply.status, await reply.text()]).toEqual([422, '{"error":{"message":"odd"}}'])
  })

  test('a compressed response keeps its encoding', async () => {
    const bytes = Buffer.from([
      0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 4, 0, 0x43, 0xbe, 0xb7, 0xe8, 1, 0, 0, 0,
    ])
    const { gateway } = await setup(rawAnswer(bytes, { headers: { 'content-encoding': 'gzip' } }))
    expect(await (await send(gateway)).text()).toBe('a')
  })

  test('a body without content-length is streamed completely', async () => {
    const parts = ['one', 'two', 'three'.repeat(10_000)]
    const { gateway } = await setup(streamAnswer(parts, { headers: { 'content-type': 'application/json' } }))
    expect(await (await send(gateway)).text()).toBe(parts.join(''))
  })

  test('event streams are byte-identical, with no event split over two writes', async () => {
    const events = Array.from({ length: 50 }, (_, i) => `{"n":${i},"text":"${'x'.repeat(i * 7)}"}`)
    const { gateway } = await setup(sseAnswer([...events, '[DONE]']))
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
    await stream.done
    expect(stream.status).toBe(200)
    expect(stream.headers.get('content-type')).toBe('text/event-stream')
    expect(stream.text()).toBe([...events, '[DONE]'].map((event) => `data: ${event}\n\n`).join(''))
    expect(stream.splitReads).toBe(0)
    expect(stream.isWhole).toBe(true)
  })

  test('a JSON error for a streaming request keeps its type', async () => {
    const { gateway } = await setup(jsonAnswer({ error: {} }, { status: 400 }))
    const reply = await send(gateway, { model: 'm', stream: true })
    expect(reply.headers.get('content-type')).toBe('application/json')
  })

  test('a silent event stream gets comment lines, never inside a line', async () => {
    let more = () => {}
    const until = new Promise<void>((resolve) => (more = resolve))
    const { gateway } = await setup(
      streamAnswer(['data: a\n\ndata: b\n', { until }, '\ndata: c', { waitMs: 1200 }, '\n\n'], {
        headers: { 'content-type': 'text/event-stream' },
      }),
      {
        kernel: { http: { heartbeatMs: 500 } },
      },
    )
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
    await stream.receive(1)
    await new Promise((resolve) => setTimeout(resolve, 1300))
    more()
    await stream.done
    expect(stream.events.map((event) => event.data)).toEqual(['a', 'b', 'c'])
    expect(stream.comments.length).toBeGreaterThan(0)
    expect(stream.text()).toContain('data: c\n\n')
  })
})

describe('failures', () => {
  test('no worker accepts the connection: 502', async () => {
    const { gateway, worker, workers } = await setup(jsonAnswer({}))
    await worker.close()
    const reply = await send(gateway)
    expect(reply.status).toBe(502)
    expect(await reply.json()).toMatchObject({
      error: { type: 'internal_error', code: 'call_upstream_connection_failed' },
    })
    expect(await idle(workers)).toBe(0)
  })

  test('a worker that closes without a response: 502', async () => {
    const { gateway, workers } = await setup(dropAnswer())
    const reply = await send(gateway)
    expect([reply.status, await errorCode(reply)]).toEqual([502, 'call_upstream_request_error'])
    expect(await idle(workers)).toBe(0)
  })

  test('a worker that does not speak HTTP: 502', async () => {
    const { gateway } = await setup(bytesAnswer('SSH-2.0-x\r\n\r\n'))
    const reply = await send(gateway)
    expect([reply.status, await errorCode(reply)]).toEqual([502, 'call_upstream_decode_error'])
  })

  test('a hanging worker reaches the request timeout: 504, in-flight back to 0', async () => {
    const { gateway, workers, worker } = await setup(hangAnswer(), {
      kernel: { upstream: { requestMs: 300 } },
    })
    const reply = await send(gateway)
    expect([reply.status, await errorCode(reply)]).toEqual([504, 'call_upstream_timeout'])
    expect(await idle(workers)).toBe(0)
    await worker.requestsTo(ECHO)[0].closed
  })

  test('the first-byte timeout: 504', async () => {
    const { gateway } = await setup(hangAnswer(), {
      kernel: { upstream: { headMs: 200, firstTokenMs: 200 } },
    })
    expect((await send(gateway)).status).toBe(504)
  })

  test('silence inside a stream reaches the idle timeout and ends with an error event', async () => {
    const { gateway, workers } = await setup(sseAnswer(['1', { hang: true }]), {
      kernel: { upstream: { idleMs: 300 } },
    })
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
    await stream.done
    expect(stream.events.map((event) => event.data)[0]).toBe('1')
    expect(JSON.parse(stream.events[1].data)).toMatchObject({ error: { code: 'stream_idle_timeout' } })
    expect(stream.isWhole).toBe(false)
    expect(await idle(workers)).toBe(0)
  })

  test('a worker that dies after 3 events: an error event, the end, and no second request', async () => {
    const { gateway, worker, workers } = await setup(sseAnswer(['1', '2', '3', { drop: 'reset' }]))
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
    await stream.done
    expect(stream.events.slice(0, 3).map((event) => event.data)).toEqual(['1', '2', '3'])
    expect(JSON.parse(stream.events[3].data)).toMatchObject({
      error: { type: 'internal_error', code: 'read_response_body_failed' },
    })
    expect(stream.isWhole).toBe(false)
    expect(worker.requestsTo(ECHO)).toHaveLength(1)
    expect(await idle(workers)).toBe(0)
  })

  test('a truncated JSON body is never presented as complete', async () => {
    const { gateway } = await setup(
      streamAnswer(['{"a":', { drop: 'close' }], { headers: { 'content-type': 'application/json' } }),
    )
    await expect(send(gateway).then((reply) => reply.text())).rejects.toThrow()
  })

  test('a client disconnect closes the connection to the worker at once', async () => {
    const { gateway, worker, workers } = await setup(sseAnswer(['1', { hang: true }]))
    const tookMs = await bestOf(10, 100, async () => {
      const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
      await stream.receive(1)
      const leftAtMs = performance.now()
      stream.close()
      const request = worker.requestsTo(ECHO)[worker.requestsTo(ECHO).length - 1]
      await request.closed
      return (request.closedAtMs ?? Infinity) - leftAtMs
    })
    expect(tookMs).toBeLessThan(1_000)
    expect(await idle(workers)).toBe(0)
  })

  test('a client disconnect before the response aborts the worker request too', async () => {
    const { gateway, worker, workers } = await setup(hangAnswer())
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm' } })
    const request = await worker.received(ECHO)
    stream.close()
    await request.closed
    expect(await idle(workers)).toBe(0)
  })
})

describe('a slow client', () => {
  test('that stops reading pauses the worker of a 100 MB stream, with bounded memory', async () => {
    const chunk = Buffer.from(`data: ${'y'.repeat(100_000)}\n\n`)
    const count = 1_000
    let sent = 0
    function* chunks() {
      for (; sent < count; sent++) yield chunk
    }
    const { gateway } = await setup(() =>
      streamAnswer(chunks(), { headers: { 'content-type': 'text/event-stream' } }),
    )
    const before = process.memoryUsage.rss()
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
    await stream.receive(1)
    stream.pause()
    // The socket buffers are full once nothing has moved for a while.
    for (let last = -1; last !== sent; ) {
      last = sent
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    expect(sent).toBeLessThan(count / 2)
    expect(process.memoryUsage.rss() - before).toBeLessThan(30_000_000)
    stream.resume()
    await stream.done
    expect(stream.isWhole).toBe(true)
    expect(stream.bodyLength).toBe(chunk.length * count)
  })

  test('pauses the worker repeatedly, and the bytes are identical', async () => {
    const chunk = Buffer.from(`data: ${'y'.repeat(65_000)}\n\n`)
    const count = 1_000
    const { gateway } = await setup(
      streamAnswer(
        Array.from({ length: count }, () => chunk),
        { headers: { 'content-type': 'text/event-stream' } },
      ),
    )
    const expected = createHash('sha256')
    for (let i = 0; i < count; i++) expected.update(chunk)
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
    await stream.receive(1)
    for (let i = 0; i < 10; i++) {
      stream.pause()
      await new Promise((resolve) => setTimeout(resolve, 30))
      stream.resume()
      await new Promise((resolve) => setImmediate(resolve))
    }
    await stream.done
    expect(stream.bodyLength).toBe(chunk.length * count)
    expect(stream.sha256()).toBe(expected.digest('hex'))
  })
})
