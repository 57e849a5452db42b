/** Circuit breakers in front of real workers: which requests pass, what clients receive, what metrics show. */
import { describe, expect, test } from 'vitest'
import { dropAnswer, jsonAnswer, type ScriptedWorker, sseAnswer } from '../support/scripted-worker.ts'
import { textUntilCut } from '../support/text-until-cut.ts'
import { type Fleet, type FleetOptions, openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const body = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
const broken = jsonAnswer({ error: 'out of memory' }, { status: 500 })
/** No response: opens the breaker even of an only worker. */
const silent = dropAnswer()
const fine = jsonAnswer({ object: 'chat.completion', choices: [] })

/** One attempt per request, so that each request is one outcome for one breaker. */
function open(breaker: object, options: Omit<FleetOptions, 'kernel'> = {}): Promise<Fleet> {
  const retry = { maxAttempts: 1 }
  return openFleet({ ...options, kernel: { policy: 'round_robin', retry, breaker } })
}

const chat = async (fleet: Fleet, more: object = {}) => {
  const response = await fleet.post('/v1/chat/completions', { ...body, ...more })
  const text = await textUntilCut(response)
  return { status: response.status, text, retryAfter: response.headers.get('retry-after') }
}

/** Statuses of sequential requests. */
async function statuses(fleet: Fleet, times: number): Promise<number[]> {
  const seen: number[] = []
  for (let i = 0; i < times; i++) seen.push((await chat(fleet)).status)
  return seen
}

async function recordOf(fleet: Fleet): Promise<unknown> {
  return ((await (await fleet.get('/workers')).json()) as { workers: unknown[] }).workers[0]
}

/** Resolves with the first response that is not 503. */
async function untilAdmitted(fleet: Fleet): Promise<{ status: number }> {
  const deadline = performance.now() + 30_000
  for (;;) {
    const answer = await chat(fleet)
    if (answer.status !== 503) return answer
    if (performance.now() > deadline) throw new Error('the breaker admits no request')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Lines of the breaker metrics, without their common prefix. */
async function breakerLines(fleet: Fleet, worker: ScriptedWorker): Promise<string[]> {
  const text = await (await fetch(fleet.gateway.metricsUrl as string)).text()
  return text
    .split('\n')
    .filter((line) => line.startsWith('weir_worker_cb_') && line.includes(worker.url))
    .map((line) => line.replace('weir_worker_cb_', '').replace(`worker="${worker.url}"`, 'w'))
    .sort()
}

describe('a breaker over time', () => {
  test('a failing worker gets no requests, then probes, and all requests again after successful probes', async () => {
    const fleet = await open({ failureThreshold: 3, successThreshold: 2, openMs: 2_000 })
    const [worker] = fleet.workers
    worker.script(CHAT, silent)
    expect(await statuses(fleet, 3)).toEqual([502, 502, 502])
    const refused = await chat(fleet)
    expect(refused).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^[12]$/) })
    expect(JSON.parse(refused.text).error.code).toBe('no_available_workers')
    expect(worker.requestsTo(CHAT)).toHaveLength(3)
    expect((await untilAdmitted(fleet)).status).toBe(502)
    expect((await chat(fleet)).status).toBe(503)
    worker.script(CHAT, fine)
    expect((await untilAdmitted(fleet)).status).toBe(200)
    expect(await breakerLines(fleet, worker)).toContain('state{w} 2')
    expect(await statuses(fleet, 3)).toEqual([200, 200, 200])
    expect(await breakerLines(fleet, worker)).toEqual([
      'consecutive_failures{w} 0',
      'consecutive_successes{w} 0',
      'outcomes_total{w,outcome="failure"} 4',
      'outcomes_total{w,outcome="success"} 4',
      'state{w} 0',
      'transitions_total{w,from="closed",to="open"} 1',
      'transitions_total{w,from="half_open",to="closed"} 1',
      'transitions_total{w,from="half_open",to="open"} 1',
      'transitions_total{w,from="open",to="half_open"} 2',
    ])
  })

  test('during a probe all other requests are rejected', async () => {
    const fleet = await open({ failureThreshold: 1, successThreshold: 1, openMs: 50 })
    const [worker] = fleet.workers
    worker.once(CHAT, silent)
    expect((await chat(fleet)).status).toBe(502)
    const released = Promise.withResolvers<typeof fine>()
    worker.script(CHAT, () => released.promise)
    const probe = untilAdmitted(fleet)
    await worker.received(CHAT, 2)
    expect(await statuses(fleet, 3)).toEqual([503, 503, 503])
    released.resolve(fine)
    expect((await probe).status).toBe(200)
    expect(await statuses(fleet, 3)).toEqual([200, 200, 200])
  })

  test('requests go to another worker if there is one, without errors for clients', async () => {
    const fleet = await openFleet({
      workers: [{}, {}],
      kernel: { policy: 'round_robin', breaker: { failureThreshold: 2, openMs: 60_000 } },
    })
    const [bad, good] = fleet.workers
    bad.script(CHAT, broken)
    expect(await statuses(fleet, 10)).toEqual(Array(10).fill(200))
    expect(bad.requestsTo(CHAT)).toHaveLength(2)
    expect(good.requestsTo(CHAT)).toHaveLength(10)
  })
})

describe('breakers of several workers', () => {
  test('the breaker of one worker does not affect another', async () => {
    const fleet = await open({ failureThreshold: 2 }, { workers: [{}, {}] })
    const [bad, good] = fleet.workers
    bad.script(CHAT, broken)
    await statuses(fleet, 4)
    expect(await statuses(fleet, 6)).toEqual([200, 200, 200, 200, 200, 200])
    expect(bad.requestsTo(CHAT)).toHaveLength(2)
    expect(await breakerLines(fleet, good)).toContain('state{w} 0')
    expect(await breakerLines(fleet, bad)).toContain('state{w} 1')
  })

  test.each([
    ['for the worker', {}, { resilience: { disable_circuit_breaker: true } }],
    ['for all', { enabled: false }, {}],
  ])('a breaker that is disabled %s never opens', async (_, breaker, spec) => {
    const fleet = await open({ failureThreshold: 2, ...breaker }, { workers: [{ spec }] })
    fleet.workers[0].script(CHAT, broken)
    expect(new Set(await statuses(fleet, 12))).toEqual(new Set([500]))
    expect(await breakerLines(fleet, fleet.workers[0])).toContain('state{w} 0')
  })

  test('a worker may have its own threshold', async () => {
    const spec = { resilience: { cb_failure_threshold: 1 } }
    const fleet = await open({}, { workers: [{ spec }] })
    fleet.workers[0].script(CHAT, silent)
    expect(await statuses(fleet, 2)).toEqual([502, 503])
  })
})

describe('the last worker of a model', () => {
  test.each([
    ['does not answer', silent, 502],
    ['answers badly', broken, 500],
  ])(
    'one request speaks once against a worker that %s, however often it was tried there',
    async (_how, answer, status) => {
      const fleet = await openFleet({
        kernel: {
          policy: 'round_robin',
          retry: { maxAttempts: 5, initialBackoffMs: 1, maxBackoffMs: 2 },
          breaker: { failureThreshold: 3 },
        },
      })
      const [worker] = fleet.workers
      worker.script(CHAT, answer)
      expect(await statuses(fleet, 2)).toEqual([status, status])
      expect(worker.requestsTo(CHAT)).toHaveLength(10)
      expect(await breakerLines(fleet, worker)).toContain('state{w} 0')
      expect(await breakerLines(fleet, worker)).toContain('consecutive_failures{w} 2')
    },
  )

  test('never opens completely for error statuses: a few requests at a time reach it, and successes close the breaker', async () => {
    const fleet = await open({ failureThreshold: 2, successThreshold: 2, lastWorkerRequests: 2 })
    const [worker] = fleet.workers
    worker.script(CHAT, broken)
    expect(await statuses(fleet, 8)).toEqual(Array(8).fill(500))
    expect(await recordOf(fleet)).toMatchObject({ breaker: 'open', is_healthy: true })
    expect(await (await fleet.get('/readiness')).json()).toMatchObject({ status: 'ready', open_breakers: 1 })
    const released = Promise.withResolvers<typeof fine>()
    worker.script(CHAT, () => released.promise)
    const running = [chat(fleet), chat(fleet)]
    await worker.received(CHAT, 10)
    expect(await chat(fleet)).toMatchObject({ status: 503, retryAfter: '1' })
    released.resolve(fine)
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200])
    expect(await recordOf(fleet)).toMatchObject({ breaker: 'closed' })
    expect(await (await fleet.get('/readiness')).json()).not.toHaveProperty('open_breakers')
  })

  test('opens completely after a missing response, or if other workers serve the model', async () => {
    const alone = await open({ failureThreshold: 2 })
    alone.workers[0].once(CHAT, silent)
    alone.workers[0].script(CHAT, broken)
    expect(await statuses(alone, 3)).toEqual([502, 500, 503])
    const beside = await open({ failureThreshold: 2 }, { workers: [{}, {}] })
    beside.workers[0].script(CHAT, broken)
    await statuses(beside, 10)
    expect(beside.workers[0].requestsTo(CHAT)).toHaveLength(2)
  })
})

describe('what counts', () => {
  test('other 4xx are successes, and a disconnected client counts as neither', async () => {
    const fleet = await open({ failureThreshold: 2 })
    const [worker] = fleet.workers
    worker.script(CHAT, jsonAnswer({ error: 'no' }, { status: 400 }))
    expect(new Set(await statuses(fleet, 5))).toEqual(new Set([400]))
    worker.script(CHAT, { kind: 'hang' })
    for (let nth = 6; nth < 10; nth++) {
      const leaving = new AbortController()
      const request = fetch(`${fleet.gateway.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(body),
        signal: leaving.signal,
      }).catch(() => null)
      const arrived = await worker.received(CHAT, nth)
      leaving.abort()
      await Promise.all([request, arrived.closed])
    }
    worker.script(CHAT, fine)
    expect((await chat(fleet)).status).toBe(200)
    expect(await breakerLines(fleet, worker)).toEqual([
      'consecutive_failures{w} 0',
      'consecutive_successes{w} 0',
      'outcomes_total{w,outcome="success"} 6',
      'state{w} 0',
    ])
  })

  test('a stream that breaks is a failure, even after a first event', async () => {
    const fleet = await open({ failureThreshold: 2 })
    fleet.workers[0].script(CHAT, sseAnswer(['{"choices":[]}', { drop: 'reset' }]))
    for (let i = 0; i < 2; i++) expect((await chat(fleet, { stream: true })).status).toBe(200)
    expect((await chat(fleet, { stream: true })).status).toBe(503)
  })
})

test('the series of a worker are removed with it', async () => {
  const fleet = await open({ failureThreshold: 1 }, { workers: [{}, {}] })
  const [gone, kept] = fleet.workers
  gone.script(CHAT, broken)
  await statuses(fleet, 2)
  expect(await breakerLines(fleet, gone)).toHaveLength(5)
  const { workers } = (await (await fleet.get('/workers')).json()) as {
    workers: { id: string; url: string }[]
  }
  const id = workers.find(({ url }) => url === gone.url)?.id
  await fetch(`${fleet.gateway.url}/workers/${id}`, { method: 'DELETE' })
  await expect.poll(() => breakerLines(fleet, gone)).toEqual([])
  expect((await breakerLines(fleet, kept)).length).toBeGreaterThan(2)
})
