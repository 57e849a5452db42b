/** Admission by priority over a real gateway: preemption, order, and permitted classes. */
import { describe, expect, test } from 'vitest'
import { jsonAnswer, type Script, sseAnswer } from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { type Fleet, openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const BODY = { model: 'test-model', messages: [{ role: 'user', content: 'hello' }] }
const AUTH = { apiKey: 'admin-key', tenantKeys: ['ops:key-ops', 'web:key-web'] }
const OPS = 'key-ops'
const WEB = 'key-web'
const ADMIN = { authorization: 'Bearer admin-key' }
const OK = jsonAnswer({ id: 'chat-1' })
/** No reserved slots, so that tests see only the classes under test. */
const NO_FLOORS = { system: { floor: 0 }, interactive: { floor: 0, share: 0 }, default: { share: 0 } }

interface ClassUse {
  running: number
  waiting: number
}

async function open(scheduler: Record<string, unknown>, script: Script = OK, kernel = {}): Promise<Fleet> {
  const fleet = await openFleet({
    kernel,
    plugins: {
      auth: AUTH,
      limits: {
        scheduler: {
          enabled: true,
          capacity: 1,
          tenants: [{ tenant: 'auth:ops', maxClass: 'system' }],
          classes: NO_FLOORS,
          ...scheduler,
        },
      },
    },
  })
  fleet.workers[0].script(CHAT, script)
  return fleet
}

/** Responds on command, by name; records the order of requests. */
class Worker {
  readonly received: string[] = []
  readonly #holds = new Map<string, () => void>()

  readonly script: Script = (request) => {
    const name = (request.json() as { user: string }).user
    const { promise, resolve } = Promise.withResolvers<void>()
    this.received.push(name)
    this.#holds.set(name, resolve)
    return promise.then(() => OK)
  }

  async answer(name: string): Promise<void> {
    await expect.poll(() => this.#holds.has(name), { interval: 5 }).toBe(true)
    this.#holds.get(name)?.()
  }
}

function chat(fleet: Fleet, key: string, priority: string, user = priority): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, 'x-weir-priority': priority }
  return fleet.post('/v1/chat/completions', { ...BODY, user }, headers)
}

async function classes(fleet: Fleet): Promise<Record<string, ClassUse>> {
  const reply = await (await fleet.get('/limits', ADMIN)).json()
  return (reply as { use: { scheduler: { classes: Record<string, ClassUse> } } }).use.scheduler.classes
}

async function reaches(fleet: Fleet, name: string, wanted: Partial<ClassUse>): Promise<void> {
  const poll = expect.poll(async () => (await classes(fleet))[name], { interval: 5 })
  await poll.toMatchObject(wanted)
}

async function codeOf(reply: Response): Promise<[number, string | undefined]> {
  return [reply.status, ((await reply.json()) as { error?: { code: string } }).error?.code]
}

describe('preemption', () => {
  test('an interactive request ends a bulk one that has sent no byte', async () => {
    const worker = new Worker()
    const fleet = await open({}, worker.script)
    const bulk = chat(fleet, OPS, 'bulk')
    const upstream = await fleet.workers[0].received(CHAT)
    const interactive = chat(fleet, OPS, 'Interactive', 'interactive')
    const victim = await bulk
    expect(victim.headers.get('retry-after')).toBe('1')
    expect(victim.headers.get('x-weir-preempted')).toBe('true')
    expect(victim.headers.get('x-smg-preempted')).toBe('true')
    expect(victim.headers.get('x-weir-error-code')).toBe('scheduler_preempted')
    expect(await codeOf(victim)).toEqual([503, 'scheduler_preempted'])
    await upstream.closed
    expect(upstream.isAborted).toBe(true)
    await worker.answer('interactive')
    expect((await interactive).status).toBe(200)
    await reaches(fleet, 'interactive', { running: 0, waiting: 0 })
    await reaches(fleet, 'bulk', { running: 0, waiting: 0 })
    const text = await (await fetch(fleet.gateway.metricsUrl as string)).text()
    expect(text).toContain('weir_scheduler_preemption_total{victim_class="bulk",by_class="interactive"} 1')
    expect(text).toContain('weir_scheduler_admit_total{class="bulk",outcome="preempted"} 1')
  })

  test('it waits for a bulk request that has sent its first byte', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const fleet = await open({}, sseAnswer(['{}', { until: promise }, '[DONE]']))
    const bulk = openSse(`${fleet.gateway.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${OPS}`, 'x-weir-priority': 'bulk' },
      body: { ...BODY, stream: true },
    })
    await bulk.receive(1)
    fleet.workers[0].script(CHAT, OK)
    const interactive = chat(fleet, OPS, 'interactive')
    await reaches(fleet, 'interactive', { waiting: 1 })
    resolve()
    await bulk.done
    expect(bulk.events.at(-1)?.data).toBe('[DONE]')
    expect((await interactive).status).toBe(200)
  })

  test('a request in back-off is preempted too, and not retried', async () => {
    const received: string[] = []
    const fleet = await open(
      {},
      (request) => {
        const { user } = request.json() as { user: string }
        received.push(user)
        return user === 'bulk' ? jsonAnswer({}, { status: 503 }) : OK
      },
      { retry: { initialBackoffMs: 2_000, jitterFactor: 0 } },
    )
    const bulk = chat(fleet, OPS, 'bulk')
    await (await fleet.workers[0].received(CHAT)).closed
    const seenAtMs = performance.now()
    expect((await chat(fleet, OPS, 'interactive')).status).toBe(200)
    expect(await codeOf(await bulk)).toEqual([503, 'scheduler_preempted'])
    await expect.poll(() => performance.now() - seenAtMs, { interval: 10 }).toBeGreaterThan(2_200)
    expect(received).toEqual(['bulk', 'interactive'])
  })

  test('a default request preempts no other', async () => {
    const worker = new Worker()
    const fleet = await open({}, worker.script)
    const bulk = chat(fleet, OPS, 'bulk')
    await fleet.workers[0].received(CHAT)
    const next = chat(fleet, OPS, 'default')
    await reaches(fleet, 'default', { waiting: 1 })
    await worker.answer('bulk')
    await worker.answer('default')
    expect((await Promise.all([bulk, next])).map(({ status }) => status)).toEqual([200, 200])
  })
})

describe('order', () => {
  test('higher classes are served first, also if they arrive last', async () => {
    const worker = new Worker()
    const fleet = await open({}, worker.script)
    const replies = [chat(fleet, OPS, 'default', 'first')]
    await fleet.workers[0].received(CHAT)
    replies.push(chat(fleet, OPS, 'bulk'))
    await reaches(fleet, 'bulk', { waiting: 1 })
    replies.push(chat(fleet, OPS, 'default'))
    await reaches(fleet, 'default', { waiting: 1 })
    for (const name of ['first', 'default', 'bulk']) await worker.answer(name)
    await Promise.all(replies)
    expect(worker.received).toEqual(['first', 'default', 'bulk'])
    const text = await (await fetch(fleet.gateway.metricsUrl as string)).text()
    for (const name of ['default', 'bulk']) {
      expect(text).toContain(`weir_scheduler_queue_wait_seconds_count{class="${name}"} 1`)
    }
  })

  test('a bulk request that has waited too long precedes higher classes', async () => {
    const worker = new Worker()
    const fleet = await open({ classes: { ...NO_FLOORS, bulk: { starvationMs: 100 } } }, worker.script)
    const replies = [chat(fleet, OPS, 'default', 'first')]
    await fleet.workers[0].received(CHAT)
    replies.push(chat(fleet, OPS, 'bulk'))
    await reaches(fleet, 'bulk', { waiting: 1 })
    const sinceMs = performance.now()
    replies.push(chat(fleet, OPS, 'default'))
    await expect.poll(() => performance.now() - sinceMs, { interval: 10 }).toBeGreaterThan(110)
    for (const name of ['first', 'bulk', 'default']) await worker.answer(name)
    await Promise.all(replies)
    expect(worker.received).toEqual(['first', 'bulk', 'default'])
  })

  test('a tenant limited to default cannot use system', async () => {
    const worker = new Worker()
    const fleet = await open({}, worker.script)
    const bulk = chat(fleet, OPS, 'bulk')
    await fleet.workers[0].received(CHAT)
    const capped = chat(fleet, WEB, 'system')
    await reaches(fleet, 'default', { waiting: 1 })
    expect((await classes(fleet)).system).toEqual({ running: 0, waiting: 0 })
    await worker.answer('bulk')
    await worker.answer('system')
    expect((await bulk).status).toBe(200)
    expect((await capped).status).toBe(200)
    const text = await (await fetch(fleet.gateway.metricsUrl as string)).text()
    expect(text).toContain(
      'weir_scheduler_clamp_total{tenant="auth:web",requested_class="system",effective_class="default"} 1',
    )
    expect(text).toContain('weir_scheduler_admit_total{class="bulk",outcome="admitted"} 1')
    expect(text).toContain('weir_scheduler_queue_depth{class="default"} 0')
    expect(text).toContain('weir_scheduler_utilization 0')
  })

  test('an unknown priority means default', async () => {
    const fleet = await open({})
    expect((await chat(fleet, OPS, 'urgent')).status).toBe(200)
    const text = await (await fetch(fleet.gateway.metricsUrl as string)).text()
    expect(text).toContain('weir_scheduler_unknown_priority_value_total{tenant="auth:ops"} 1')
    expect(text).toContain('weir_scheduler_admit_total{class="default",outcome="admitted"} 1')
  })
})

describe('the queue of a class', () => {
  const busy = { ...NO_FLOORS, default: { share: 0, queueSize: 1, queueTimeoutMs: 3_000 } }

  test('is bounded in length and time', async () => {
    const worker = new Worker()
    const fleet = await open({ classes: busy }, worker.script)
    const running = chat(fleet, WEB, 'default', 'first')
    await fleet.workers[0].received(CHAT)
    const waiter = chat(fleet, WEB, 'default')
    await reaches(fleet, 'default', { waiting: 1 })
    const refused = await chat(fleet, WEB, 'default')
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(await codeOf(refused)).toEqual([429, 'scheduler_queue_full'])
    expect(await codeOf(await waiter)).toEqual([408, 'scheduler_queue_timeout'])
    await worker.answer('first')
    expect((await running).status).toBe(200)
    expect(worker.received).toEqual(['first'])
  })

  test('drops a client that disconnects', async () => {
    const worker = new Worker()
    const fleet = await open({ classes: busy }, worker.script)
    const running = chat(fleet, WEB, 'default', 'first')
    await fleet.workers[0].received(CHAT)
    const waiter = openSse(`${fleet.gateway.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${WEB}` },
      body: BODY,
    })
    await reaches(fleet, 'default', { waiting: 1 })
    waiter.close()
    await reaches(fleet, 'default', { running: 1, waiting: 0 })
    const text = await (await fetch(fleet.gateway.metricsUrl as string)).text()
    expect(text).toContain('weir_scheduler_admit_total{class="default",outcome="client_cancelled"} 1')
    await worker.answer('first')
    await running
  })
})

test('the capacity is the sum that the workers report, sampled at run time', async () => {
  const fleet = await openFleet({
    workers: [{ spec: { labels: { max_running_requests: '3' } } }, {}],
    plugins: { limits: { scheduler: { enabled: false } } },
  })
  // Enabled once both are ready, so that the first sample includes them.
  const body = JSON.stringify({ scheduler: { enabled: true } })
  const reply = await fetch(`${fleet.gateway.url}/limits`, { method: 'PATCH', body })
  expect(await reply.json()).toMatchObject({ use: { scheduler: { capacity: 67 } } })
})
