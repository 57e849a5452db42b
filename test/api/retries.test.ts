/** Further attempts on other workers: when they follow, what they send, and what ends them. */

import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { type AttemptReport, apiErrorFormat, type Host } from '#kernel'
import { collectResponse } from '#shared'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { plugin } from '../support/hooked-gateway.ts'
import {
  bytesAnswer,
  dropAnswer,
  hangAnswer,
  jsonAnswer,
  type Script,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
  streamAnswer,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { type StaticWorker, type StaticWorkers, staticWorkers } from '../support/static-workers.ts'

const ECHO = 'POST /echo'
/** Back-off that does not slow the tests. */
const QUICK = { initialBackoffMs: 1, maxBackoffMs: 5 }

let cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.reverse()) await clean()
  cleanups = []
})

interface Setup {
  readonly gateway: TestGateway
  readonly workers: readonly ScriptedWorker[]
  readonly table: StaticWorkers
  send(body?: unknown, path?: string): Promise<Response>
  attempts(): number[]
  /** In-flight counts of all workers, once they are zero or the timeout has passed. */
  idle(): Promise<number[]>
  metric(name: string): Promise<string[]>
}

interface SetupOptions {
  readonly entries?: readonly Partial<StaticWorker>[]
  readonly kernel?: Record<string, unknown>
  readonly register?: (host: Host) => void
}

/** One worker per script, picked in this order. */
async function setup(answers: readonly Script[], options: SetupOptions = {}): Promise<Setup> {
  const workers = await Promise.all(answers.map(() => startScriptedWorker()))
  for (const [index, worker] of workers.entries()) {
    cleanups.push(() => worker.close())
    worker.script(ECHO, answers[index])
  }
  const table = staticWorkers(
    workers.map(({ url }, index) => ({ url, priority: 90 - index, ...options.entries?.[index] })),
  )
  const gateway = await startGateway({
    own: [table.plugin, plugin('own', options.register ?? (() => {}))],
    plugins: { auth: {}, policies: {} },
    kernel: { policy: 'least_load', retry: QUICK, ...options.kernel },
  })
  cleanups.push(() => gateway.stop())
  const inFlight = () => table.balance().workers.map(({ slot }) => table.balance().inFlight(slot))
  return {
    gateway,
    workers,
    table,
    send: (body = { model: 'm' }, path = '/relay') =>
      fetch(gateway.url + path, { method: 'POST', body: JSON.stringify(body) }),
    attempts: () => workers.map((worker) => worker.requestsTo(ECHO).length),
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

const errorCode = async (reply: Response) => ((await reply.json()) as { error: { code: string } }).error.code
const refusal = (status: number, headers: Record<string, string> = {}) =>
  jsonAnswer({ refused: status }, { status, headers })

describe('retried failures', () => {
  test('first worker 503, second 200: the client receives 200, and one retry is counted', async () => {
    const { send, attempts, metric, idle } = await setup([refusal(503), jsonAnswer({ ok: 1 })])
    const reply = await send()
    expect([reply.status, await reply.json()]).toEqual([200, { ok: 1 }])
    expect(attempts()).toEqual([1, 1])
    expect(await idle()).toEqual([0, 0])
    const labels = 'worker_type="regular",endpoint="other"'
    expect(await metric('weir_worker_retries_total')).toEqual([`weir_worker_retries_total{${labels}} 1`])
    expect(await metric('weir_worker_retries_exhausted_total')).toEqual([])
    expect(await metric('weir_worker_retry_backoff_seconds_count')).toEqual([
      'weir_worker_retry_backoff_seconds_count{attempt="2"} 1',
    ])
  })

  test('all workers 503: exactly 5 attempts, and the last response is passed on unchanged', async () => {
    let count = 0
    const answer = () => jsonAnswer({ attempt: ++count }, { status: 503, headers: { etag: 'w' } })
    const { send, attempts, metric } = await setup([answer, answer])
    const reply = await send()
    expect([reply.status, await reply.json()]).toEqual([503, { attempt: 5 }])
    expect(reply.headers.get('etag')).toBe('w')
    expect(reply.headers.get('x-weir-error-code')).toBeNull()
    expect(attempts().reduce((sum, one) => sum + one)).toBe(5)
    expect(await metric('weir_worker_retries_exhausted_total')).toEqual([
      'weir_worker_retries_exhausted_total{worker_type="regular",endpoint="other"} 1',
    ])
  })

  test('with retries disabled there is exactly one attempt', async () => {
    const { send, attempts, metric } = await setup([refusal(500), jsonAnswer({})], {
      kernel: { retry: { maxAttempts: 1 } },
    })
    expect((await send()).status).toBe(500)
    expect(attempts()).toEqual([1, 0])
    expect(await metric('weir_worker_retries_exhausted_total')).toEqual([])
  })

  test.each([400, 401, 404, 422, 501])('%d is never retried', async (status) => {
    const { send, attempts } = await setup([refusal(status), jsonAnswer({})])
    const reply = await send()
    expect([reply.status, await reply.json()]).toEqual([status, { refused: status }])
    expect(attempts()).toEqual([1, 0])
  })

  test.each([
    ['closes without a response', dropAnswer()],
    ['resets', dropAnswer('reset')],
  ] as const)('a worker that %s is replaced by another', async (_how, answer) => {
    const { send, attempts, idle } = await setup([answer, jsonAnswer({ ok: 1 })])
    expect((await send()).status).toBe(200)
    expect(attempts()).toEqual([1, 1])
    expect(await idle()).toEqual([0, 0])
  })

  test('so is one that refuses connections, or does not respond in time', async () => {
    const { send, workers } = await setup([hangAnswer(), hangAnswer(), jsonAnswer({ ok: 1 })], {
      kernel: { retry: QUICK, upstream: { headMs: 1_000, firstTokenMs: 1_000 } },
    })
    await workers[0].close()
    expect((await send()).status).toBe(200)
    await workers[1].requestsTo(ECHO)[0].closed
  })

  test('a worker that breaks after its first byte is not, because the work may have begun', async () => {
    const { send, attempts } = await setup([bytesAnswer('HTTP/1.1 200 O', true), jsonAnswer({})])
    const reply = await send()
    expect([reply.status, await errorCode(reply)]).toEqual([502, 'call_upstream_request_error'])
    expect(attempts()).toEqual([1, 0])
  })

  test('a worker that dies after 3 events is not replaced, and the failure counts against it', async () => {
    const { gateway, attempts, table, idle } = await setup(
      [sseAnswer(['1', '2', '3', { drop: 'reset' }]), sseAnswer(['x'])],
      { kernel: { retry: QUICK, breaker: { failureThreshold: 1 } } },
    )
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
    await stream.done
    expect(stream.events.slice(0, 3).map((event) => event.data)).toEqual(['1', '2', '3'])
    expect(JSON.parse(stream.events[3].data)).toMatchObject({ error: { code: 'read_response_body_failed' } })
    expect([stream.events.length, stream.isWhole]).toEqual([4, false])
    expect(attempts()).toEqual([1, 0])
    expect(table.balance().breakerState(table.balance().workers[0].slot)).toBe('open')
    expect(await idle()).toEqual([0, 0])
  })

  test('a streaming request rejected before its first event goes to another worker', async () => {
    const { gateway } = await setup([refusal(429), sseAnswer(['1', '[DONE]'])])
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
    await stream.done
    expect(stream.events.map((event) => event.data)).toEqual(['1', '[DONE]'])
  })

  test('a collected response is retried like a relayed one', async () => {
    const { send, attempts } = await setup([refusal(503), jsonAnswer({ ok: 1 })], {
      register: (host) =>
        host.route({
          method: 'POST',
          path: '/collect',
          access: 'api',
          errors: apiErrorFormat,
          docs: { summary: 'collects', tag: 'test', responses: {} },
          handler: async (ctx) => {
            const reply = await collectResponse(host.upstream, ctx, {
              model: 'm',
              stream: false,
              path: '/echo',
            })
            ctx.json(reply.status, { got: reply.json() })
          },
        }),
    })
    expect(await (await send({ model: 'm' }, '/collect')).json()).toEqual({ got: { ok: 1 } })
    expect(attempts()).toEqual([1, 1])
  })

  test('a route that names its worker uses no other', async () => {
    const { send, attempts } = await setup([refusal(503), jsonAnswer({})], {
      register: (host) =>
        host.route({
          method: 'POST',
          path: '/named',
          access: 'api',
          errors: apiErrorFormat,
          docs: { summary: 'names its worker', tag: 'test', responses: {} },
          handler: (ctx) => {
            const [worker] = host.balance.workers
            host.upstream.relay(ctx, { model: null, stream: false, path: '/echo', worker })
          },
        }),
    })
    expect((await send({ model: 'm' }, '/named')).status).toBe(503)
    expect(attempts()).toEqual([1, 0])
  })
})

describe('requests of further attempts', () => {
  test('have the same body, also a large one, and go to another worker', async () => {
    const { send, workers } = await setup([refusal(500), refusal(502), jsonAnswer({})])
    const body = { model: 'm', text: 'ü'.repeat(100_000) }
    expect((await send(body)).status).toBe(200)
    for (const worker of workers)
      expect(worker.requestsTo(ECHO)[0].body.toString()).toBe(JSON.stringify(body))
  })

  test('have their own headers: each worker gets its key, and the hook runs once per attempt', async () => {
    const seen: string[] = []
    const { send, workers } = await setup([refusal(500), jsonAnswer({})], {
      entries: [{ apiKey: 'first' }, { apiKey: 'second' }],
      register: (host) => {
        host.hook(
          'onUpstreamRequest',
          async (_ctx, { worker, headers }) => {
            seen.push(worker.url)
            headers.push('x-hook', String(seen.length))
          },
          { scope: 'all' },
        )
      },
    })
    await send()
    expect(seen).toEqual(workers.map((worker) => worker.url))
    const sent = workers.map((worker) => worker.requestsTo(ECHO)[0])
    expect(sent.map((request) => request.header('authorization'))).toEqual(['Bearer first', 'Bearer second'])
    expect(sent.map((request) => request.header('x-hook'))).toEqual(['1', '2'])
  })
})

describe('the back-off', () => {
  const gapMs = ([first, second]: readonly ScriptedWorker[]) =>
    second.requestsTo(ECHO)[0].receivedAtMs - first.requestsTo(ECHO)[0].receivedAtMs

  /** A test that had to wait for this back-off would time out. */
  const ENDLESS = { initialBackoffMs: 600_000, maxBackoffMs: 600_000 }
  const busy = (status: number) => refusal(status, { 'retry-after': '30' })

  test('follows the Retry-After of the worker, up to the maximum', async () => {
    const { send, workers } = await setup([refusal(503, { 'retry-after': '60' }), jsonAnswer({})], {
      kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 300, maxWaitMs: 60_000 } },
    })
    expect((await send()).status).toBe(200)
    expect(gapMs(workers)).toBeGreaterThan(290)
    expect(gapMs(workers)).toBeLessThan(20_000)
  })

  test.each([429, 503])('%d with a long Retry-After: another worker is tried at once', async (status) => {
    const { send, attempts, idle } = await setup([busy(status), jsonAnswer({ ok: 1 })], {
      kernel: { retry: ENDLESS },
    })
    expect((await send()).status).toBe(200)
    expect(attempts()).toEqual([1, 1])
    expect(await idle()).toEqual([0, 0])
  })

  test('without another worker the client receives the response and its Retry-After', async () => {
    const { send, attempts } = await setup([busy(503), busy(429)], { kernel: { retry: ENDLESS } })
    const reply = await send()
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([429, '30'])
    expect(await reply.json()).toEqual({ refused: 429 })
    expect(attempts()).toEqual([1, 1])
  })

  test('a worker picked by a hook is not retried at once, because the hook may pick it again', async () => {
    const { send, attempts } = await setup([busy(503), jsonAnswer({})], {
      kernel: { retry: ENDLESS },
      register: (host) => void host.hook('onPick', () => host.balance.workers[0].slot, { scope: 'all' }),
    })
    expect((await send()).status).toBe(503)
    expect(attempts()).toEqual([1, 0])
  })

  test("a worker's own maxWaitMs overrides the gateway's", async () => {
    const answers = [busy(503), jsonAnswer({ ok: 1 })]
    const { send, attempts } = await setup([() => answers.shift() ?? busy(503)], {
      entries: [{ resilience: { maxWaitMs: 60_000 } }],
      kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 20 } },
    })
    expect((await send()).status).toBe(200)
    expect(attempts()).toEqual([2])
  })

  test('is skipped if the request has no time for it: the response is passed on', async () => {
    const { send, attempts } = await setup([refusal(503, { 'retry-after': '5' }), jsonAnswer({})], {
      kernel: { retry: { initialBackoffMs: 1, maxWaitMs: 60_000 }, upstream: { requestMs: 2_000 } },
    })
    const reply = await send()
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '5'])
    expect(attempts()).toEqual([1, 0])
  })

  test('ends with the client: no attempt follows', async () => {
    const { gateway, send, workers, attempts, idle } = await setup([refusal(503), jsonAnswer({})], {
      kernel: { retry: { initialBackoffMs: 100, jitterFactor: 0 } },
    })
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm' } })
    await (await workers[0].received(ECHO)).closed
    stream.close()
    // The back-off of this request starts later than that of the one before, so it also ends later.
    expect((await send()).status).toBe(200)
    expect(attempts()).toEqual([2, 1])
    expect(await idle()).toEqual([0, 0])
  })

  test('releases the worker: a short response is read to its end, an endless one is aborted', async () => {
    const endless = streamAnswer(['{', { hang: true }], { status: 503 })
    const { send, workers } = await setup([refusal(503), endless, jsonAnswer({})])
    await send()
    await send()
    const connections = workers.map((worker) => worker.requestsTo(ECHO).map((request) => request.isAborted))
    await workers[1].requestsTo(ECHO)[1].closed
    expect(connections[0]).toEqual([false, false])
    expect(workers[1].requestsTo(ECHO).map((request) => request.isAborted)).toEqual([true, true])
    expect(workers[0].openConnections).toBe(1)
  })
})

describe('the request timeout', () => {
  test('a hanging worker reaches the request timeout: 504, in-flight back to 0', async () => {
    const { send, idle } = await setup([hangAnswer()], { kernel: { upstream: { requestMs: 1_000 } } })
    const startedAtMs = performance.now()
    const reply = await send()
    expect([reply.status, await errorCode(reply)]).toEqual([504, 'call_upstream_timeout'])
    expect(performance.now() - startedAtMs).toBeLessThan(10_000)
    expect(await idle()).toEqual([0])
  })

  test('attempts share it: several hanging workers take no longer than one', async () => {
    const { send, attempts, idle } = await setup([hangAnswer(), hangAnswer(), hangAnswer()], {
      kernel: { retry: QUICK, upstream: { headMs: 1_000, firstTokenMs: 1_000, requestMs: 2_500 } },
    })
    const startedAtMs = performance.now()
    const reply = await send()
    expect([reply.status, await errorCode(reply)]).toEqual([504, 'call_upstream_timeout'])
    expect(performance.now() - startedAtMs).toBeLessThan(10_000)
    expect(attempts()[1]).toBe(1)
    expect(await idle()).toEqual([0, 0, 0])
  })

  test("a worker's own timeouts apply to it alone", async () => {
    const { send, attempts } = await setup([hangAnswer(), jsonAnswer({ ok: 1 })], {
      entries: [{ httpPool: { requestMs: 200 } }],
    })
    expect((await send()).status).toBe(200)
    expect(attempts()).toEqual([1, 1])
  })
})

describe('if no worker can be picked', () => {
  test('a worker that becomes ready in time is used: the 503 of the pick is retried', async () => {
    const { send, table } = await setup([jsonAnswer({ ok: 1 })], {
      kernel: { retry: { initialBackoffMs: 200, maxBackoffMs: 200 } },
    })
    const { slot } = table.balance().workers[0]
    table.balance().setStatus(slot, 'not_ready')
    const response = send()
    await pause(50)
    table.balance().setStatus(slot, 'ready')
    expect((await response).status).toBe(200)
  })

  test('otherwise the client receives the reason', async () => {
    const { send, table } = await setup([jsonAnswer({})])
    table.balance().setStatus(table.balance().workers[0].slot, 'not_ready')
    const reply = await send()
    expect([reply.status, await errorCode(reply)]).toEqual([503, 'no_available_workers'])
    expect(reply.headers.get('retry-after')).toBe('1')
  })

  test('a client that disconnects meanwhile is not served', async () => {
    const { gateway, table, send, attempts } = await setup([jsonAnswer({})], {
      kernel: { retry: { initialBackoffMs: 100, jitterFactor: 0 } },
    })
    const { slot } = table.balance().workers[0]
    table.balance().setStatus(slot, 'not_ready')
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm' } })
    await pause(30)
    stream.close()
    const response = send()
    await pause(30)
    table.balance().setStatus(slot, 'ready')
    expect((await response).status).toBe(200)
    expect(attempts()).toEqual([1])
  })

  test('a model without workers is 404 at once', async () => {
    const { send, metric } = await setup([jsonAnswer({})], { entries: [{ models: ['other'] }] })
    const reply = await send()
    expect([reply.status, await errorCode(reply)]).toEqual([404, 'model_not_found'])
    expect(await metric('weir_worker_retries_total')).toEqual([])
  })
})

describe('settings of a worker', () => {
  test('disableRetry: its failure is final', async () => {
    const { send, attempts } = await setup([refusal(503), jsonAnswer({})], {
      entries: [{ resilience: { disableRetry: true } }],
    })
    expect((await send()).status).toBe(503)
    expect(attempts()).toEqual([1, 0])
  })

  test('retryableStatuses: the statuses that are failures of it', async () => {
    const { send, attempts } = await setup([refusal(418), refusal(500), jsonAnswer({})], {
      entries: [{ resilience: { retryableStatuses: [418] } }, { resilience: { retryableStatuses: [418] } }],
    })
    expect((await send()).status).toBe(500)
    expect(attempts()).toEqual([1, 1, 0])
  })

  test('maxAttempts: the number of attempts after its failure', async () => {
    const { send, attempts } = await setup([refusal(503), refusal(503), jsonAnswer({})], {
      entries: [{}, { resilience: { maxAttempts: 2 } }],
    })
    expect((await send()).status).toBe(503)
    expect(attempts()).toEqual([1, 1, 0])
  })
})

describe('the breaker', () => {
  const breaker = { failureThreshold: 2 }
  const stateOf = ({ table }: Setup) => table.balance().breakerState(table.balance().workers[0].slot)

  test('counts failures per attempt, and an open breaker excludes its worker', async () => {
    const all = await setup([refusal(503), jsonAnswer({})], { kernel: { retry: QUICK, breaker } })
    for (let i = 0; i < 3; i++) expect((await all.send()).status).toBe(200)
    expect(stateOf(all)).toBe('open')
    expect(all.attempts()).toEqual([2, 3])
  })

  test('counts a client error as a success', async () => {
    const answers = [refusal(503), refusal(400), refusal(503), jsonAnswer({})]
    let count = 0
    const all = await setup([() => answers[count++]], {
      kernel: { retry: { maxAttempts: 1 }, breaker },
    })
    for (let i = 0; i < 4; i++) await all.send()
    expect(stateOf(all)).toBe('closed')
  })

  test('counts a client disconnect as neither', async () => {
    const all = await setup([sseAnswer(['1', { hang: true }])], {
      kernel: { breaker: { failureThreshold: 1 } },
    })
    for (let i = 0; i < 2; i++) {
      const stream = openSse(`${all.gateway.url}/relay`, { body: { model: 'm', stream: true } })
      await stream.receive(1)
      stream.close()
    }
    expect(await all.idle()).toEqual([0])
    expect(stateOf(all)).toBe('closed')
    expect(await all.metric('weir_worker_cb_outcomes_total')).toEqual([])
  })
})

describe('onAttempt', () => {
  const reports: AttemptReport[] = []
  const observe = (host: Host) => {
    reports.length = 0
    host.hook('onAttempt', (_ctx, report) => void reports.push(report), { scope: 'all' })
  }

  test('reports each attempt with worker, number, times and outcome', async () => {
    const { send, workers } = await setup([refusal(503), dropAnswer(), jsonAnswer({})], { register: observe })
    await send()
    expect(reports.map(({ worker }) => worker.url)).toEqual(workers.map(({ url }) => url))
    expect(reports).toMatchObject([
      { number: 1, status: 503, failure: null, outcome: 'retried', policy: 'least_load' },
      { number: 2, status: 0, failure: 'reset', outcome: 'retried', answeredAtMs: 0 },
      { number: 3, status: 200, failure: null, outcome: 'success' },
    ])
    for (const { startedAtMs, answeredAtMs, endedAtMs, candidates } of reports) {
      expect(startedAtMs).toBeGreaterThan(0)
      if (answeredAtMs !== 0) expect(answeredAtMs).toBeGreaterThanOrEqual(startedAtMs)
      expect(endedAtMs).toBeGreaterThanOrEqual(Math.max(startedAtMs, answeredAtMs))
      expect(candidates).not.toBeNull()
    }
  })

  test('reports a last failure, and a client disconnect', async () => {
    const { send, gateway, workers, idle } = await setup([refusal(500)], {
      kernel: { retry: { ...QUICK, maxAttempts: 2 } },
      register: observe,
    })
    await send()
    expect(reports.map(({ outcome }) => outcome)).toEqual(['retried', 'failure'])
    workers[0].script(ECHO, hangAnswer())
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm' } })
    const request = await workers[0].received(ECHO, 3)
    stream.close()
    await request.closed
    await idle()
    expect(reports[2]).toMatchObject({ number: 1, outcome: 'cancelled', status: 0 })
  })

  test('that throws has no effect on the request', async () => {
    const { send, idle } = await setup([refusal(500), jsonAnswer({})], {
      register: (host) => {
        host.hook(
          'onAttempt',
          () => {
            throw new Error('no')
          },
          { scope: 'all' },
        )
      },
    })
    expect((await send()).status).toBe(200)
    expect(await idle()).toEqual([0, 0])
  })
})

test('after a thousand requests with every kind of outcome, all counts are zero', async () => {
  const outcomes: readonly (() => Script)[] = [
    () => jsonAnswer({ ok: 1 }),
    () => refusal(503),
    () => refusal(400),
    () => dropAnswer(),
    () => dropAnswer('reset'),
    () => sseAnswer(['1', '2']),
    () => sseAnswer(['1', { drop: 'reset' }]),
    () => streamAnswer(['{', { hang: true }], { status: 500 }),
    () => hangAnswer(),
  ]
  let draw = 1
  // Linear congruential generator with constants of Numerical Recipes: the same outcomes in every run.
  const next = (below: number) => {
    draw = (Math.imul(draw, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((draw / 2 ** 32) * below)
  }
  const anyOutcome: Script = (request) => {
    const outcome = outcomes[next(outcomes.length)]()
    return typeof outcome === 'function' ? outcome(request) : outcome
  }
  const { gateway, idle, table } = await setup([anyOutcome, anyOutcome, anyOutcome], {
    kernel: {
      retry: QUICK,
      breaker: { enabled: false },
      upstream: { headMs: 100, firstTokenMs: 100, idleMs: 100 },
    },
  })
  const one = async () => {
    const stream = openSse(`${gateway.url}/relay`, { body: { model: 'm', stream: true } })
    const disconnectAfterMs = [0, 5, 20, 10_000][next(4)]
    await Promise.race([stream.done, pause(disconnectAfterMs, undefined, { ref: false })])
    stream.close()
  }
  for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 50 }, one))
  expect(await idle()).toEqual([0, 0, 0])
  expect(table.balance().workers).toHaveLength(3)
})
