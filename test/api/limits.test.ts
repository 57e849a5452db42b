/** The concurrency limit, its queue and the rate over a real gateway: which requests run, wait, or are rejected with Retry-After. */
import { describe, expect, test } from 'vitest'
import { type Answer, dropAnswer, jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { type Fleet, openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const BODY = { model: 'test-model', messages: [{ role: 'user', content: 'hello' }] }
const OK = jsonAnswer({ id: 'chat-1', choices: [] })

interface Use {
  inUse: number
  waiting: number
}

/** A worker that responds once released. */
function held(answer: Answer = OK): { script: Script; release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { script: () => promise.then(() => answer), release: resolve }
}

/** One attempt and no breaker, so that each failure is one failed request. */
const KERNEL = { retry: { maxAttempts: 1 }, breaker: { enabled: false } }

async function open(limits: Record<string, unknown>, script?: Script): Promise<Fleet> {
  const fleet = await openFleet({ kernel: KERNEL, plugins: { limits } })
  fleet.workers[0].script(CHAT, script ?? OK)
  return fleet
}

const chat = (fleet: Fleet, headers?: Record<string, string>) =>
  fleet.post('/v1/chat/completions', BODY, headers)

const stream = (fleet: Fleet) =>
  openSse(`${fleet.gateway.url}/v1/chat/completions`, { body: { ...BODY, stream: true } })

async function useOf(fleet: Fleet): Promise<Use> {
  return ((await (await fleet.get('/limits')).json()) as { use: Use }).use
}

/** Polls until the use is as wanted. */
async function reaches(fleet: Fleet, wanted: Partial<Use>): Promise<void> {
  await expect.poll(() => useOf(fleet), { interval: 5 }).toMatchObject(wanted)
}

async function codeOf(reply: Response): Promise<[number, string | undefined]> {
  return [reply.status, ((await reply.json()) as { error?: { code: string } }).error?.code]
}

describe('the concurrency limit', () => {
  test('of four concurrent requests two run, one waits and one gets 429', async () => {
    const hold = held()
    const fleet = await open({ maxConcurrentRequests: 2, queueSize: 1 }, hold.script)
    const first = [chat(fleet), chat(fleet)]
    await reaches(fleet, { inUse: 2 })
    const waiter = chat(fleet)
    await reaches(fleet, { inUse: 2, waiting: 1 })
    const refused = await chat(fleet)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.headers.get('x-weir-error-code')).toBe('queue_full')
    expect(await refused.json()).toMatchObject({ error: { type: 'rate_limit_error', code: 'queue_full' } })
    expect(fleet.workers[0].requestsTo(CHAT)).toHaveLength(2)
    hold.release()
    const replies = await Promise.all([...first, waiter])
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
    await reaches(fleet, { inUse: 0, waiting: 0 })
    expect(await metrics(fleet)).toContain('weir_limits_queue_wait_seconds_count 1')
  })

  test('a request that exceeds the queue timeout gets 408', async () => {
    const hold = held()
    const fleet = await open({ maxConcurrentRequests: 1, queueSize: 1, queueTimeoutMs: 200 }, hold.script)
    const running = chat(fleet)
    await reaches(fleet, { inUse: 1 })
    const late = await chat(fleet)
    expect(late.status).toBe(408)
    expect(await late.json()).toMatchObject({ error: { type: 'timeout_error', code: 'queue_timeout' } })
    await reaches(fleet, { inUse: 1, waiting: 0 })
    hold.release()
    expect((await running).status).toBe(200)
  })

  test('a queue of size 0 rejects at once', async () => {
    const hold = held()
    const fleet = await open({ maxConcurrentRequests: 1, queueSize: 0 }, hold.script)
    const running = chat(fleet)
    await reaches(fleet, { inUse: 1 })
    expect(await codeOf(await chat(fleet))).toEqual([429, 'queue_full'])
    hold.release()
    await running
  })

  test.each([-1, 0])('%i means no limit', async (maxConcurrentRequests) => {
    const hold = held()
    const fleet = await open({ maxConcurrentRequests, queueSize: 0 }, hold.script)
    const replies = Array.from({ length: 20 }, () => chat(fleet))
    await fleet.workers[0].received(CHAT, 20)
    hold.release()
    expect((await Promise.all(replies)).every(({ status }) => status === 200)).toBe(true)
  })

  test('a permit is released at the end of a stream, and not before', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const fleet = await open({ maxConcurrentRequests: 1 }, sseAnswer(['{}', { until: promise }, '[DONE]']))
    const reply = stream(fleet)
    await reply.receive(1)
    expect(await useOf(fleet)).toMatchObject({ inUse: 1 })
    const waiter = stream(fleet)
    await reaches(fleet, { waiting: 1 })
    resolve()
    await Promise.all([reply.done, waiter.done])
    expect(waiter.status).toBe(200)
    await reaches(fleet, { inUse: 0, waiting: 0 })
  })

  test('a permit is released when the client disconnects in mid-stream', async () => {
    const fleet = await open({ maxConcurrentRequests: 1 }, sseAnswer(['{}', { hang: true }]))
    const reply = stream(fleet)
    await reply.receive(1)
    reply.close()
    await reaches(fleet, { inUse: 0 })
    fleet.workers[0].script(CHAT, OK)
    expect((await chat(fleet)).status).toBe(200)
  })

  test('a permit is released when the worker fails', async () => {
    const fleet = await open({ maxConcurrentRequests: 1 }, dropAnswer())
    for (let i = 0; i < 3; i++) expect((await chat(fleet)).status).toBeGreaterThanOrEqual(500)
    await reaches(fleet, { inUse: 0 })
    fleet.workers[0].script(CHAT, OK)
    expect((await chat(fleet)).status).toBe(200)
  })

  test('hundreds of mixed requests leak no permit', async () => {
    let count = 0
    const answers = [
      OK,
      dropAnswer(),
      sseAnswer(['{}', { waitMs: 5 }, '[DONE]']),
      jsonAnswer({}, { status: 500 }),
    ]
    const fleet = await open(
      { maxConcurrentRequests: 4, queueSize: 20, queueTimeoutMs: 300 },
      () => answers[count++ % answers.length],
    )
    const one = async (index: number) => {
      if (index % 3 > 0) return (await chat(fleet)).text()
      const reply = stream(fleet)
      // Some disconnect while queued, some in mid-stream, some complete.
      if (index % 2 === 0) setTimeout(() => reply.close(), index % 17)
      return reply.done
    }
    for (let round = 0; round < 10; round++)
      await Promise.all(Array.from({ length: 40 }, (_, index) => one(index + round)))
    await reaches(fleet, { inUse: 0, waiting: 0 })
    fleet.workers[0].script(CHAT, OK)
    expect((await chat(fleet)).status).toBe(200)
  })

  test('a client that disconnects leaves the queue at once', async () => {
    const hold = held()
    const fleet = await open({ maxConcurrentRequests: 1, queueSize: 1 }, hold.script)
    const running = chat(fleet)
    await reaches(fleet, { inUse: 1 })
    const waiter = stream(fleet)
    await reaches(fleet, { waiting: 1 })
    waiter.close()
    await reaches(fleet, { inUse: 1, waiting: 0 })
    hold.release()
    await running
    expect(fleet.workers[0].requestsTo(CHAT)).toHaveLength(1)
    await reaches(fleet, { inUse: 0, waiting: 0 })
  })

  test('health, models and the control plane are not limited', async () => {
    const hold = held()
    const fleet = await open({ maxConcurrentRequests: 1, queueSize: 0 }, hold.script)
    const running = chat(fleet)
    await reaches(fleet, { inUse: 1 })
    const paths = ['/health', '/readiness', '/v1/models', '/workers', '/limits']
    const replies = await Promise.all(paths.map((path) => fleet.get(path)))
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    hold.release()
    await running
  })
})

describe('the rate', () => {
  test('a burst passes, the next request is rejected with Retry-After', async () => {
    const fleet = await open({ requestsPerSecond: 0.1, burst: 2 })
    expect((await chat(fleet)).status).toBe(200)
    expect((await chat(fleet)).status).toBe(200)
    const refused = await chat(fleet)
    // Each second of delay by the machine lowers it by one.
    expect([10, 9, 8, 7]).toContain(Number(refused.headers.get('retry-after')))
    expect(await codeOf(refused)).toEqual([429, 'rate_limit_exceeded'])
  })
})

describe('the limits routes', () => {
  test('a change applies at once to new and queued requests', async () => {
    const hold = held()
    const fleet = await open({ maxConcurrentRequests: 1, queueSize: 5 }, hold.script)
    const replies = [chat(fleet), chat(fleet), chat(fleet)]
    await reaches(fleet, { inUse: 1, waiting: 2 })
    const changed = await send(fleet, 'PATCH', { maxConcurrentRequests: 2 })
    expect(await changed.json()).toMatchObject({ limits: { maxConcurrentRequests: 2, queueSize: 5 } })
    await reaches(fleet, { inUse: 2, waiting: 1 })
    await send(fleet, 'PATCH', { maxConcurrentRequests: 0 })
    await reaches(fleet, { waiting: 0 })
    hold.release()
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 200, 200])
    await reaches(fleet, { inUse: 0 })
  })

  test('limits can be switched on while the gateway runs, and off again', async () => {
    const fleet = await open({})
    expect((await chat(fleet)).status).toBe(200)
    // Admission was not involved.
    expect(await metrics(fleet)).toContain('weir_http_rate_limit_total{result="allowed"} 0')
    await send(fleet, 'PATCH', { requestsPerSecond: 0.01 })
    expect((await chat(fleet)).status).toBe(200)
    expect((await chat(fleet)).status).toBe(429)
    await send(fleet, 'PUT', {})
    expect((await chat(fleet)).status).toBe(200)
  })

  test.each([
    ['maxConcurrent', { maxConcurrent: 1 }],
    ['queueSize', { queueSize: -1 }],
    ['tenants.maxTenants', { tenants: { maxTenants: 16 } }],
    ['tenants.overrides.0.tenant', { tenants: { overrides: [{ tenant: 'team-a' }] } }],
    ['scheduler.classes.bulk.floor', { scheduler: { classes: { bulk: { floor: -1 } } } }],
  ])('a change with a wrong %s is refused and changes nothing', async (param, change) => {
    const fleet = await open({ maxConcurrentRequests: 3 })
    const reply = await send(fleet, 'PATCH', change)
    expect(reply.status).toBe(400)
    expect(await reply.json()).toMatchObject({ error: { type: 'bad_request', param } })
    expect(await (await fleet.get('/limits')).json()).toMatchObject({ limits: { maxConcurrentRequests: 3 } })
  })

  test('metrics count admitted and rejected requests', async () => {
    const fleet = await open({ requestsPerSecond: 0.01 })
    await chat(fleet)
    await chat(fleet)
    const text = await metrics(fleet)
    expect(text).toContain('weir_http_rate_limit_total{result="allowed"} 1')
    expect(text).toContain('weir_http_rate_limit_total{result="rejected"} 1')
    expect(text).toContain('weir_limits_rejections_total{reason="rate_limit_exceeded"} 1')
    expect(text).toContain('weir_limits_queue_depth 0')
  })
})

describe('at boot', () => {
  test('contradictory settings prevent the start, with the name of the field', async () => {
    const tenants = { overrides: [{ tenant: 'team-a', requestsPerMinute: 1 }] }
    await expect(open({ tenants })).rejects.toThrow(/limits.*tenants\.overrides\.0\.tenant/)
  })
})

async function metrics(fleet: Fleet): Promise<string> {
  return (await fetch(fleet.gateway.metricsUrl as string)).text()
}

function send(fleet: Fleet, method: string, body: unknown): Promise<Response> {
  return fetch(`${fleet.gateway.url}/limits`, { method, body: JSON.stringify(body) })
}
