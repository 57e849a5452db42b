/** A client that disconnects at any stage of its request: the request ends once and releases everything, and late results have no effect. */
import { afterEach, expect, test } from 'vitest'
import type { AttemptReport, Host } from '#kernel'
import { type HookedGateway, type HookedOptions, openHooked } from '../support/hooked-gateway.ts'
import { hangAnswer, jsonAnswer, type Script, sseAnswer, streamAnswer } from '../support/scripted-worker.ts'

const ECHO = 'POST /echo'
const ALL = { scope: 'all' } as const

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

/** Blocks a hook until the test releases it. */
class Hold {
  readonly entered = Promise.withResolvers<void>()
  readonly #released = Promise.withResolvers<void>()

  async pass<T>(value: T): Promise<T> {
    this.entered.resolve()
    await this.#released.promise
    return value
  }

  release(): void {
    this.#released.resolve()
  }
}

interface Stage {
  readonly answer: Script
  readonly hooks?: (host: Host, hold: Hold) => void
  readonly kernel?: HookedOptions['kernel']
  /** Resolves when the request is at the stage; default: when the hold was entered. */
  readonly reached?: (hooked: HookedGateway) => Promise<unknown>
  readonly reachesWorker: boolean
}

const received = (hooked: HookedGateway) => hooked.worker.received(ECHO)
const responded = async (hooked: HookedGateway) => {
  await received(hooked)
  await new Promise((resolve) => setTimeout(resolve, 30))
}
const SLOW_RETRY = { retry: { initialBackoffMs: 60_000, maxBackoffMs: 60_000 } }
const refusal = jsonAnswer({}, { status: 503 })

const stages: Record<string, Stage> = {
  'in a slow onRequest': {
    answer: jsonAnswer({}),
    hooks: (host, hold) => host.hook('onRequest', () => hold.pass(undefined), ALL),
    reachesWorker: false,
  },
  'in a slow onUpstreamRequest': {
    answer: jsonAnswer({}),
    hooks: (host, hold) => host.hook('onUpstreamRequest', () => hold.pass(undefined), ALL),
    reachesWorker: false,
  },
  'before the response head': { answer: hangAnswer(), reached: received, reachesWorker: true },
  'between the head and the first byte': {
    answer: streamAnswer([{ hang: true }], { headers: { 'content-type': 'text/event-stream' } }),
    reached: responded,
    reachesWorker: true,
  },
  'in a slow onResponse of a non-streamed response': {
    answer: jsonAnswer({}),
    hooks: (host, hold) => host.hook('onResponse', () => hold.pass(undefined), ALL),
    reachesWorker: true,
  },
  'in a slow onResponse of a stream': {
    answer: sseAnswer(['1', { hang: true }]),
    hooks: (host, hold) => host.hook('onResponse', () => hold.pass(undefined), ALL),
    reachesWorker: true,
  },
  'in a slow onEvents': {
    answer: sseAnswer(['1', { waitMs: 10 }, '2', { hang: true }]),
    hooks: (host, hold) => host.hook('onEvents', (_ctx, events) => hold.pass(events), ALL),
    reachesWorker: true,
  },
  'in a slow onError': {
    answer: refusal,
    kernel: { retry: { maxAttempts: 1 } },
    hooks: (host, hold) => {
      host.hook('onResponse', () => Promise.reject(new Error('careless')), ALL)
      host.hook('onError', (_ctx, error) => hold.pass(error), ALL)
    },
    reachesWorker: true,
  },
  'between two attempts': {
    answer: refusal,
    kernel: SLOW_RETRY,
    reached: responded,
    reachesWorker: true,
  },
}

test.each(Object.entries(stages))('%s', async (_when, { answer, hooks, kernel, reached, reachesWorker }) => {
  const hold = new Hold()
  const attempts: AttemptReport[] = []
  let ends = 0
  const hooked = await openHooked(
    (host) => {
      hooks?.(host, hold)
      host.hook('onAttempt', (_ctx, report) => void attempts.push(report), ALL)
      host.hook('onDone', (ctx) => void (ctx.isAborted && ends++), ALL)
    },
    { answer, kernel },
  )
  cleanups.push(() => hooked.close())
  const client = new AbortController()
  const reply = hooked.relay({ model: 'm' }, { signal: client.signal }).then(
    async (response) => response.text(),
    () => '',
  )
  await (reached ?? (() => hold.entered.promise))(hooked)
  client.abort()
  await reply.catch(() => {})
  await expect.poll(() => ends).toBe(1)
  expect(await hooked.inFlight()).toBe(0)
  hold.release()
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  expect(ends).toBe(1)
  expect(hooked.worker.requestsTo(ECHO)).toHaveLength(reachesWorker ? 1 : 0)
  expect(attempts.length).toBeLessThanOrEqual(1)
  // The shutdown has no open request to wait for.
  const startMs = performance.now()
  await hooked.gateway.stop()
  expect(performance.now() - startMs).toBeLessThan(10_000)
})

test('clients that disconnect during a slow onRequest hook hold no permit', async () => {
  const hold = new Hold()
  const hooked = await openHooked((host) => host.hook('onRequest', () => hold.pass(undefined), ALL), {
    answer: jsonAnswer({}),
    plugins: { auth: {}, limits: { maxConcurrentRequests: 2, queueSize: 0 } },
  })
  cleanups.push(() => hooked.close())
  const disconnecting = Array.from({ length: 20 }, async () => {
    const leave = new AbortController()
    const reply = hooked.relay({ model: 'm' }, { signal: leave.signal })
    await hold.entered.promise
    setTimeout(() => leave.abort(), 20)
    await reply.catch(() => {})
  })
  await Promise.all(disconnecting)
  await new Promise((resolve) => setTimeout(resolve, 50))
  hold.release()
  const replies = await Promise.all([hooked.relay(), hooked.relay()])
  expect(replies.map(({ status }) => status)).toEqual([200, 200])
})
