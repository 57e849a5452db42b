/** Requests that a prefill and a decode worker share: what both receive, whose response is used, and what fails a pair. */
import { afterEach, describe, expect, test } from 'vitest'
import type { AttemptReport, Host } from '#kernel'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { plugin } from '../support/hooked-gateway.ts'
import {
  type Answer,
  dropAnswer,
  hangAnswer,
  jsonAnswer,
  type RecordedRequest,
  type Script,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse, type SseStream } from '../support/sse-client.ts'
import { type StaticWorker, type StaticWorkers, staticWorkers } from '../support/static-workers.ts'
import { openFleet } from './fleet.ts'

const ECHO = 'POST /echo'
const NO_RETRY = { retry: { maxAttempts: 1 } }
const QUICK = { retry: { initialBackoffMs: 1, maxBackoffMs: 5 } }

let cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.reverse()) await clean()
  cleanups = []
})

interface Setup {
  readonly gateway: TestGateway
  readonly prefill: readonly ScriptedWorker[]
  readonly decode: readonly ScriptedWorker[]
  readonly table: StaticWorkers
  send(body?: unknown): Promise<Response>
  stream(body?: object): SseStream
  /** In-flight counts of all workers, once they are zero or the timeout has passed. */
  idle(): Promise<number[]>
  inFlight(): number[]
  metric(name: string): Promise<string[]>
}

interface SetupOptions {
  readonly kernel?: Record<string, unknown>
  readonly entry?: Partial<StaticWorker>
  /** Each worker is rank 3 of 4 of its engine. */
  readonly isRank?: boolean
  readonly others?: readonly StaticWorker[]
  readonly register?: (host: Host) => void
  readonly auth?: Record<string, unknown>
}

/** One worker per script; the first of each kind is picked first. */
async function setup(
  prefillAnswers: readonly Script[],
  decodeAnswers: readonly Script[],
  options: SetupOptions = {},
): Promise<Setup> {
  const open = (answers: readonly Script[]) =>
    Promise.all(
      answers.map(async (answer) => {
        const worker = (await startScriptedWorker()).script(ECHO, answer)
        cleanups.push(() => worker.close())
        return worker
      }),
    )
  const [prefill, decode] = [await open(prefillAnswers), await open(decodeAnswers)]
  const entries = (workers: readonly ScriptedWorker[], workerType: 'prefill' | 'decode') =>
    workers.map(({ url }, index) => ({
      url,
      workerType,
      priority: 90 - index,
      bootstrapPort: workerType === 'prefill' ? 9_000 + index : null,
      ...(options.isRank ? { url: `${url}@3`, dataParallel: { baseUrl: url, rank: 3, size: 4 } } : {}),
      ...options.entry,
    }))
  const table = staticWorkers([
    ...entries(prefill, 'prefill'),
    ...entries(decode, 'decode'),
    ...(options.others ?? []),
  ])
  const gateway = await startGateway({
    own: [table.plugin, plugin('own', options.register ?? (() => {}))],
    plugins: { auth: options.auth ?? {}, pairs: {} },
    kernel: options.kernel ?? QUICK,
  })
  cleanups.push(() => gateway.stop())
  const inFlight = () => table.balance().workers.map(({ slot }) => table.balance().inFlight(slot))
  return {
    gateway,
    prefill,
    decode,
    table,
    inFlight,
    send: (body = { model: 'm' }) =>
      fetch(`${gateway.url}/relay`, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    stream: (body = {}) => openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true, ...body } }),
    idle: async () => {
      const untilMs = performance.now() + 30_000
      while (inFlight().some((count) => count > 0) && performance.now() < untilMs)
        await new Promise((resolve) => setImmediate(resolve))
      return inFlight()
    },
    metric: async (name) => {
      const text = await (await fetch(`${gateway.metricsUrl}`)).text()
      return text.split('\n').filter((line) => line.startsWith(name))
    },
  }
}

const errorOf = async (reply: Response) =>
  ((await reply.json()) as { error: { code: string; message: string } }).error
const only = (workers: readonly ScriptedWorker[], index = 0): RecordedRequest[] =>
  workers[index].requestsTo(ECHO)
const roomText = (request: RecordedRequest) =>
  /"bootstrap_room":(\[[\d,]+\]|\d+)/.exec(request.body.toString())?.[1]

/** A response that the test releases. */
function gated(answer: Answer): { script: Script; open: () => void } {
  const gate = Promise.withResolvers<void>()
  return { script: () => gate.promise.then(() => answer), open: gate.resolve }
}

describe('the requests to both workers', () => {
  test('both receive the same body with the same bootstrap members; the response is that of decode', async () => {
    const all = await setup(
      [jsonAnswer({ from: 'prefill' })],
      [jsonAnswer({ from: 'decode' }, { status: 201 })],
    )
    const reply = await all.send('{"model":"m", "odd" : [1.0]}')
    expect([reply.status, await reply.json()]).toEqual([201, { from: 'decode' }])
    const [sent, alsoSent] = [only(all.prefill)[0], only(all.decode)[0]]
    expect(sent.body.equals(alsoSent.body)).toBe(true)
    expect(sent.body.toString()).toMatch(
      /^\{"bootstrap_host":"127.0.0.1","bootstrap_port":9000,"bootstrap_room":\d+,"model":"m", "odd" : \[1.0\]\}$/,
    )
    expect(sent.path).toBe('/echo')
    expect(await all.idle()).toEqual([0, 0])
  })

  test('every request has its own room, and for n = 2 an array of rooms', async () => {
    const all = await setup([jsonAnswer({})], [jsonAnswer({})])
    for (let i = 0; i < 10; i++) await all.send()
    const rooms = only(all.prefill).map(roomText)
    expect(new Set(rooms).size).toBe(10)
    expect(only(all.decode).map(roomText)).toEqual(rooms)
    await all.send({ model: 'm', n: 2 })
    const sent = only(all.decode)[10]
    expect(sent.json()).toMatchObject({
      bootstrap_host: Array(2).fill('127.0.0.1'),
      bootstrap_port: [9000, 9000],
    })
    const [first, second] = (roomText(sent) ?? '').slice(1, -1).split(',')
    expect(first).not.toBe(second)
    expect(roomText(only(all.prefill)[10])).toBe(roomText(sent))
  })

  test('each receives its own key, and bootstrap members from the client are replaced', async () => {
    const all = await setup([jsonAnswer({})], [jsonAnswer({})], {
      entry: { apiKey: 'worker-key', bootstrapHost: 'boot', bootstrapPort: null },
      auth: { apiKey: 'gate' },
    })
    await fetch(`${all.gateway.url}/relay`, {
      method: 'POST',
      headers: { authorization: 'Bearer gate' },
      body: '{"model":"m","bootstrap_host":"evil","bootstrap_room":1}',
    })
    for (const request of [...only(all.prefill), ...only(all.decode)]) {
      expect(request.header('authorization')).toBe('Bearer worker-key')
      expect(request.json()).toMatchObject({ bootstrap_host: 'boot', bootstrap_port: null })
      expect(request.body.toString()).not.toContain('evil')
    }
  })

  test('both receive the canonical id of an alias, and the hook runs for both requests', async () => {
    const seen: string[] = []
    const all = await setup([jsonAnswer({})], [jsonAnswer({})], {
      entry: { models: [{ id: 'real', aliases: ['nick'] }] },
      register: (host) => {
        host.hook(
          'onUpstreamRequest',
          async (_ctx, { worker, headers }) => {
            seen.push(worker.workerType)
            headers.push('x-leg', worker.workerType)
          },
          { scope: 'all' },
        )
      },
    })
    await all.send({ model: 'nick' })
    expect(seen).toEqual(['prefill', 'decode'])
    expect(only(all.prefill)[0].header('x-leg')).toBe('prefill')
    expect(only(all.decode)[0].json()).toMatchObject({ model: 'real' })
  })

  test('ranks of data-parallel engines receive their rank at the URL of the engine', async () => {
    const all = await setup([jsonAnswer({})], [jsonAnswer({})], { isRank: true })
    expect((await all.send({ model: 'm', data_parallel_rank: 7 })).status).toBe(200)
    for (const request of [...only(all.prefill), ...only(all.decode)]) {
      expect(request.json()).toMatchObject({ data_parallel_rank: 3, bootstrap_host: '127.0.0.1' })
      expect(request.body.toString().match(/data_parallel_rank/g)).toHaveLength(1)
    }
  })
})

describe('the response', () => {
  test('starts once prefill is complete, then streams byte for byte', async () => {
    const prefill = gated(jsonAnswer({}))
    const all = await setup([prefill.script], [sseAnswer(['1', '2', '[DONE]'])])
    const stream = all.stream()
    await all.decode[0].received(ECHO)
    await all.prefill[0].received(ECHO)
    expect(stream.status).toBe(0)
    expect(all.inFlight()).toEqual([1, 1])
    prefill.open()
    await stream.done
    expect([stream.text(), stream.isWhole]).toEqual(['data: 1\n\ndata: 2\n\ndata: [DONE]\n\n', true])
    expect(await all.idle()).toEqual([0, 0])
  })

  test('both workers count as in flight until the last byte', async () => {
    const last = Promise.withResolvers<void>()
    const all = await setup([jsonAnswer({})], [sseAnswer(['1', { until: last.promise }, '2'])])
    const stream = all.stream()
    await stream.receive(1)
    expect(all.inFlight()).toEqual([1, 1])
    last.resolve()
    await stream.done
    expect(await all.idle()).toEqual([0, 0])
  })

  test('a large response reaches a slow client complete', async () => {
    const chunk = `data: ${'y'.repeat(60_000)}\n\n`
    const all = await setup(
      [jsonAnswer({})],
      [streamAnswer(Array(300).fill(chunk), { headers: { 'content-type': 'text/event-stream' } })],
    )
    const stream = all.stream()
    await stream.receive(1)
    stream.pause()
    await new Promise((resolve) => setTimeout(resolve, 100))
    stream.resume()
    await stream.done
    expect(stream.bodyLength).toBe(chunk.length * 300)
  })

  test('a client that disconnects aborts both worker requests', async () => {
    const all = await setup([sseAnswer(['1', { hang: true }])], [hangAnswer()])
    const stream = all.stream()
    const sent = [await all.prefill[0].received(ECHO), await all.decode[0].received(ECHO)]
    stream.close()
    for (const request of sent) await request.closed
    expect(await all.idle()).toEqual([0, 0])
  })

  test('durations of both legs are measured', async () => {
    const all = await setup([jsonAnswer({})], [jsonAnswer({})])
    await all.send()
    const labels = '{backend_type="pd",model="unknown",runtime="unspecified"}'
    const expected = (name: string) => [`${name}${labels.replace('unknown', 'm')} 1`]
    for (const name of ['weir_pd_prefill_duration_seconds_count', 'weir_pd_ttft_seconds_count'])
      expect(await all.metric(name)).toEqual(expected(name))
    expect(await all.metric('weir_router_requests_total')).toEqual([
      expect.stringContaining('router_type="http",backend_type="pd"'),
    ])
  })
})

describe('if a worker of the pair returns an error status', () => {
  test.each([
    [400, 400, 'decode_bad_request'],
    [404, 404, 'decode_not_found'],
    [422, 500, 'decode_error'],
    [500, 500, 'decode_internal_error'],
    [502, 502, 'decode_bad_gateway'],
    [503, 503, 'decode_unavailable'],
  ])('decode %d: the client gets %d %s, and prefill is stopped', async (status, sent, code) => {
    const all = await setup([hangAnswer()], [jsonAnswer({ error: { message: 'too long' } }, { status })], {
      kernel: NO_RETRY,
    })
    const reply = await all.send({ model: 'm', stream: true })
    const error = await errorOf(reply)
    expect([reply.status, error.code]).toEqual([sent, code])
    expect(error.message).toBe(`the decode worker returned status ${status}: too long`)
    await only(all.prefill)[0].closed
    expect(await all.idle()).toEqual([0, 0])
  })

  test('prefill: the same, and the decode request is aborted', async () => {
    const all = await setup([jsonAnswer({ message: 'no' }, { status: 400 })], [hangAnswer()])
    const reply = await all.send()
    expect([reply.status, (await errorOf(reply)).code]).toEqual([400, 'prefill_bad_request'])
    await only(all.decode)[0].closed
    expect(only(all.prefill)).toHaveLength(1)
    expect(await all.idle()).toEqual([0, 0])
  })

  test('a long error body is truncated, and the rest is not awaited', async () => {
    const story = streamAnswer(['x'.repeat(100_000), { hang: true }], { status: 500 })
    const all = await setup([jsonAnswer({})], [story], { kernel: NO_RETRY })
    const error = await errorOf(await all.send())
    expect(error.code).toBe('decode_internal_error')
    expect(error.message.length).toBeLessThan(1_100)
    await only(all.decode)[0].closed
    expect(only(all.decode)[0].isAborted).toBe(true)
  })

  test('another pair is tried, without the worker that failed', async () => {
    const all = await setup(
      [jsonAnswer({}), jsonAnswer({})],
      [jsonAnswer({}, { status: 503 }), jsonAnswer({ ok: 1 })],
    )
    expect(await (await all.send()).json()).toEqual({ ok: 1 })
    expect([only(all.decode), only(all.decode, 1)].map(({ length }) => length)).toEqual([1, 1])
    expect(roomText(only(all.decode)[0])).not.toBe(roomText(only(all.decode, 1)[0]))
    expect(await all.metric('weir_worker_retries_total')).toEqual([
      'weir_worker_retries_total{worker_type="decode",endpoint="other"} 1',
    ])
    expect(await all.idle()).toEqual([0, 0, 0, 0])
  })

  test.each(['prefill', 'decode'] as const)(
    'a long Retry-After of the %s worker: another pair at once, or the status with the header',
    async (leg) => {
      const retry = { initialBackoffMs: 600_000, maxBackoffMs: 600_000 }
      const busy = jsonAnswer({}, { status: 503, headers: { 'retry-after': '30' } })
      const open = (answers: readonly Script[]) =>
        leg === 'prefill'
          ? setup(answers, [jsonAnswer({ ok: 1 })], { kernel: { retry } })
          : setup([jsonAnswer({ ok: 1 })], answers, { kernel: { retry } })
      expect(await (await (await open([busy, jsonAnswer({ ok: 1 })])).send()).json()).toEqual({ ok: 1 })
      const reply = await (await open([busy])).send()
      expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '30'])
      expect((await errorOf(reply)).code).toBe(`${leg}_unavailable`)
    },
  )

  test('only the breaker of the failed worker counts the failure', async () => {
    const all = await setup([jsonAnswer({}, { status: 500 })], [hangAnswer()], {
      kernel: { ...NO_RETRY, breaker: { failureThreshold: 1 } },
    })
    expect((await errorOf(await all.send())).code).toBe('prefill_internal_error')
    const states = all.table.balance().workers.map(({ slot }) => all.table.balance().breakerState(slot))
    expect(states).toEqual(['open', 'closed'])
    const reply = await all.send()
    // An only worker with an error status is slowed, not blocked.
    expect([reply.status, (await errorOf(reply)).code]).toEqual([500, 'prefill_internal_error'])
  })
})

describe('if a connection breaks', () => {
  test.each(['prefill', 'decode'] as const)(
    'that of %s stops the other: 502 pd_request_failed',
    async (broken) => {
      const answers = { prefill: hangAnswer(), decode: hangAnswer(), [broken]: dropAnswer('reset') }
      const all = await setup([answers.prefill], [answers.decode], { kernel: NO_RETRY })
      const reply = await all.send()
      const error = await errorOf(reply)
      expect([reply.status, error.code]).toEqual([502, 'pd_request_failed'])
      expect(error.message).toContain(broken)
      const other = broken === 'prefill' ? all.decode : all.prefill
      if (only(other).length > 0) await only(other)[0].closed
      expect(await all.idle()).toEqual([0, 0])
    },
  )

  test('before the first byte, another pair is tried, also if decode had started to respond', async () => {
    const began = gated(dropAnswer('reset'))
    const all = await setup(
      [began.script, jsonAnswer({})],
      [sseAnswer(['1', { hang: true }]), sseAnswer(['2'])],
    )
    const stream = all.stream()
    await all.decode[0].received(ECHO)
    all.decode[0].script(ECHO, sseAnswer(['again']))
    began.open()
    await stream.done
    expect(stream.events.map(({ data }) => data)).toEqual(['again'])
    expect(only(all.prefill, 1)).toHaveLength(1)
  })

  test('after the first byte, the stream ends with an error event, without a retry', async () => {
    const all = await setup([jsonAnswer({})], [sseAnswer(['1', { drop: 'reset' }])])
    const stream = all.stream()
    await stream.done
    expect(stream.events[0].data).toBe('1')
    expect(JSON.parse(stream.events[1].data)).toMatchObject({ error: { code: 'read_response_body_failed' } })
    expect(only(all.decode)).toHaveLength(1)
    expect(await all.idle()).toEqual([0, 0])
  })

  test('a hanging prefill worker reaches the timeout: 504, and both requests are released', async () => {
    const all = await setup([hangAnswer()], [sseAnswer(['1'])], {
      kernel: { retry: { maxAttempts: 1 }, upstream: { requestMs: 300 } },
    })
    const reply = await all.send()
    expect([reply.status, (await errorOf(reply)).code]).toEqual([504, 'call_upstream_timeout'])
    expect(await all.idle()).toEqual([0, 0])
  })

  test('without a worker for one leg: 503 with the missing leg', async () => {
    const all = await setup([jsonAnswer({})], [jsonAnswer({})])
    all.table.balance().setStatus(all.table.balance().workers[1].slot, 'not_ready')
    const reply = await all.send()
    const error = await errorOf(reply)
    expect([reply.status, error.code]).toEqual([503, 'server_selection_failed'])
    expect(error.message).toContain('decode')
    expect(await all.idle()).toEqual([0, 0])
  })

  test('an oversized batch is rejected before any worker gets a request', async () => {
    const all = await setup([jsonAnswer({})], [jsonAnswer({})])
    const reply = await all.send({ model: 'm', n: 1_000_000 })
    expect([reply.status, (await errorOf(reply)).code]).toEqual([400, 'pd_batch_too_large'])
    expect(only(all.prefill)).toHaveLength(0)
    const name = 'weir_pd_bootstrap_failures_total'
    expect(await all.metric(name)).toEqual([`${name} 1`])
    expect(await all.idle()).toEqual([0, 0])
  })
})

describe('log probabilities of the prompt', () => {
  const wanted = { model: 'm', return_logprob: true }
  const meta = (...input_token_logprobs: unknown[]) => ({ meta_info: { input_token_logprobs, n: 1 } })

  test('come from prefill and precede those of decode', async () => {
    const all = await setup(
      [jsonAnswer(meta([-1, 5], [-2, 6]))],
      [jsonAnswer({ text: 'a', ...meta([-3, 7]) })],
    )
    const reply = await all.send(wanted)
    expect(await reply.json()).toEqual({ text: 'a', ...meta([-1, 5], [-2, 6], [-3, 7]) })
  })

  test('are merged by prompt in a batch, and added to a response without them', async () => {
    const all = await setup(
      [jsonAnswer([meta('a'), meta('b')])],
      [jsonAnswer([{ meta_info: {} }, meta('c')])],
    )
    expect(await (await all.send(wanted)).json()).toEqual([
      { meta_info: { input_token_logprobs: ['a'] } },
      meta('b', 'c'),
    ])
  })

  test('are in every event of a stream, for any chunks; the end marker is kept', async () => {
    const events = [JSON.stringify(meta('b')), JSON.stringify({ text: 'x' }), '[DONE]']
    const bytes = Buffer.from(events.map((event) => `data: ${event}\n\n`).join(''))
    const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) =>
      bytes.subarray(i * 7, i * 7 + 7),
    )
    const all = await setup(
      [sseAnswer([JSON.stringify(meta('a')), '[DONE]'])],
      [streamAnswer(pieces, { headers: { 'content-type': 'text/event-stream' } })],
    )
    const stream = all.stream(wanted)
    await stream.done
    expect(stream.events.map(({ data }) => data)).toEqual([
      JSON.stringify(meta('a', 'b')),
      ...events.slice(1),
    ])
    expect([stream.isWhole, stream.splitReads]).toEqual([true, 0])
  })

  test('a response too large to be merged is a failure of decode', async () => {
    const pieces = Array<Buffer>(66).fill(Buffer.alloc(1_048_576, 0x20))
    const all = await setup(
      [jsonAnswer(meta('a'))],
      [streamAnswer(pieces, { headers: { 'content-type': 'application/json' } })],
      { kernel: NO_RETRY },
    )
    const reply = await all.send(wanted)
    expect([reply.status, (await errorOf(reply)).code]).toEqual([502, 'pd_request_failed'])
    expect(await all.idle()).toEqual([0, 0])
  })

  test('an unreadable prefill response leaves the decode response unchanged', async () => {
    const all = await setup([jsonAnswer('none')], [jsonAnswer(meta('c'))])
    expect(await (await all.send(wanted)).json()).toEqual(meta('c'))
  })
})

test('onAttempt reports both attempts of a pair', async () => {
  const reports: AttemptReport[] = []
  const all = await setup([jsonAnswer({})], [jsonAnswer({}, { status: 201 })], {
    register: (host) => {
      host.hook('onAttempt', (_ctx, report) => void reports.push(report), { scope: 'all' })
    },
  })
  await all.send()
  expect(reports).toMatchObject([
    { worker: { workerType: 'prefill' }, number: 1, status: 200, outcome: 'success' },
    { worker: { workerType: 'decode' }, number: 1, status: 201, outcome: 'success' },
  ])
})

test('regular workers of the same model serve complete requests', async () => {
  const whole = (await startScriptedWorker()).script(ECHO, jsonAnswer({ from: 'whole' }))
  cleanups.push(() => whole.close())
  const all = await setup([jsonAnswer({})], [jsonAnswer({ from: 'pair' })], { others: [{ url: whole.url }] })
  const seen = new Set<string>()
  for (let i = 0; i < 60 && seen.size < 2; i++)
    seen.add(((await (await all.send()).json()) as { from: string }).from)
  expect([...seen].sort()).toEqual(['pair', 'whole'])
  expect(whole.requestsTo(ECHO)[0].body.toString()).toBe('{"model":"m"}')
})

test('after hundreds of pairs with every combination of outcomes, all counts are zero', async () => {
  const outcomes: readonly Answer[] = [
    jsonAnswer({ ok: 1 }),
    sseAnswer(['1', '2']),
    jsonAnswer({}, { status: 503 }),
    jsonAnswer({}, { status: 400 }),
    dropAnswer('reset'),
    sseAnswer(['1', { drop: 'reset' }]),
    streamAnswer(['{', { hang: true }], { status: 500 }),
    hangAnswer(),
  ]
  let turn = 0
  // Strides coprime to the number of outcomes, so that every prefill outcome meets every decode outcome.
  const prefill = () => outcomes[Math.floor(turn++ / outcomes.length) % outcomes.length]
  const decode = () => outcomes[(turn * 3) % outcomes.length]
  const all = await setup([prefill, prefill], [decode, decode], {
    kernel: {
      ...QUICK,
      breaker: { enabled: false },
      upstream: { headMs: 100, firstTokenMs: 100, idleMs: 100 },
    },
  })
  const one = async (index: number) => {
    const stream = all.stream()
    const left = new Promise<void>((resolve) => setTimeout(resolve, index % 3 === 0 ? index : 10_000).unref())
    await Promise.race([stream.done, left])
    stream.close()
  }
  for (let round = 0; round < 10; round++) await Promise.all(Array.from({ length: 40 }, (_, i) => one(i)))
  expect(await all.idle()).toEqual([0, 0, 0, 0])
})

test('workers registered as prefill and decode serve the inference routes together', async () => {
  const { workers, post } = await openFleet({
    workers: [
      { spec: { worker_type: 'prefill', bootstrap_port: 8998 } },
      { spec: { worker_type: 'decode' } },
    ],
  })
  const [prefill, decode] = workers
  const ranked = [{ score: 0.9, document: 'a', index: 0 }]
  for (const worker of workers) worker.script('POST /v1/rerank', jsonAnswer(ranked))
  const messages = [{ role: 'user', content: 'hi' }]
  expect((await post('/v1/chat/completions', { model: 'test-model', messages, n: 2 })).status).toBe(200)
  const [request] = decode.requestsTo('POST /v1/chat/completions')
  expect(request.json()).toMatchObject({ bootstrap_port: [8998, 8998], n: 2 })
  expect(prefill.requestsTo('POST /v1/chat/completions')[0].body.equals(request.body)).toBe(true)
  const reranked = await post('/rerank', { model: 'test-model', query: 'q', documents: ['a'] })
  expect([reranked.status, await reranked.json()]).toMatchObject([200, { results: ranked }])
  expect(prefill.requestsTo('POST /v1/rerank')).toHaveLength(1)
})
