/** The global limit of `/ha/rate-limit`, and the limits that two gateways share on a real engine. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'
import { type Fleet, openFleet } from './fleet.ts'

const BODY = { model: 'test-model', messages: [{ role: 'user', content: 'hello' }] }
const OK = jsonAnswer({ usage: { prompt_tokens: 5, completion_tokens: 5 } })
const RATE = '/ha/rate-limit'

async function open(plugins: Record<string, unknown>): Promise<Fleet> {
  const fleet = await openFleet({ plugins: { limits: {}, ...plugins } })
  fleet.workers[0].script('POST /v1/chat/completions', OK)
  return fleet
}

const chat = (fleet: Fleet) => fleet.post('/v1/chat/completions', BODY)
const json = async (reply: Promise<Response>): Promise<unknown> => (await reply).json()

async function statuses(replies: readonly Promise<Response>[]): Promise<number[]> {
  return (await Promise.all(replies)).map(({ status }) => status)
}

const patch = (fleet: Fleet, body: object) =>
  fetch(`${fleet.gateway.url}/limits`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const count = (seen: readonly number[], status: number) => seen.filter((one) => one === status).length

/** Waits for the next window of the engine, whose clock is that of this machine, unless this one is long enough. */
async function windowStart(windowMs = 1_000, neededMs = 700): Promise<void> {
  const restMs = windowMs - (Date.now() % windowMs)
  if (restMs < neededMs) await pause(restMs + 20)
}

/** Runs requests within one second of the engine; again in a later one if a busy machine takes longer. */
async function inOneSecond<T>(run: () => Promise<T>): Promise<T> {
  for (;;) {
    await windowStart()
    const second = Math.floor(Date.now() / 1_000)
    const result = await run()
    if (Math.floor(Date.now() / 1_000) === second) return result
    await pause(1_020 - (Date.now() % 1_000))
  }
}

describe('the global limit of one gateway', () => {
  test('M30 to M32: 404 until it is set; wrong bodies change nothing', async () => {
    const fleet = await open({ mesh: {} })
    const unset = await fleet.get(RATE)
    expect([unset.status, await unset.json()]).toMatchObject([404, { error: { type: 'not_found' } }])
    expect(await json(fleet.post(RATE, { limit_per_second: 5 }))).toEqual({
      status: 'updated',
      limit_per_second: 5,
    })
    for (const body of [{ limit_per_second: -1 }, { limit_per_second: '5' }, {}, '{'])
      expect((await fleet.post(RATE, body)).status).toBe(400)
    expect(await json(fleet.get(RATE))).toEqual({ limit_per_second: 5 })
  })

  test('M33 to M38: 429 beyond the limit, counts of the second, 0 disables it', async () => {
    const fleet = await open({ mesh: {} })
    const stats = () => json(fleet.get(`${RATE}/stats`))
    expect(await stats()).toEqual({ limit_per_second: 0, current_count: 0, remaining: -1 })
    await fleet.post(RATE, { limit_per_second: 5 })
    const [replies, used] = await inOneSecond(
      async () => [await Promise.all(Array.from({ length: 20 }, () => chat(fleet))), await stats()] as const,
    )
    expect(used).toEqual({ limit_per_second: 5, current_count: 5, remaining: 0 })
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(5)
    const refused = replies.find(({ status }) => status === 429)
    expect(refused?.headers.get('retry-after')).toBe('1')
    expect(await refused?.json()).toMatchObject({
      error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
    })
    await pause(1_000)
    expect(await inOneSecond(async () => [(await chat(fleet)).status, await stats()])).toEqual([
      200,
      { limit_per_second: 5, current_count: 1, remaining: 4 },
    ])
    await fleet.post(RATE, { limit_per_second: 0 })
    expect(await statuses(Array.from({ length: 20 }, () => chat(fleet)))).not.toContain(429)
    expect(await stats()).toEqual({ limit_per_second: 0, current_count: 0, remaining: -1 })
    expect(await json(fleet.get(RATE))).toEqual({ limit_per_second: 0 })
  })

  test('M34, M39: in the format of the route; other routes are not limited', async () => {
    const fleet = await open({ mesh: {}, messages: {} })
    await fleet.post(RATE, { limit_per_second: 1 })
    const refused = await inOneSecond(async () => {
      await chat(fleet)
      return fleet.post('/v1/messages', { ...BODY, max_tokens: 5 })
    })
    expect([refused.status, await refused.json()]).toMatchObject([
      429,
      { type: 'error', error: { type: 'rate_limit_error' } },
    ])
    for (const path of ['/health', '/liveness', '/workers', '/limits', '/ha/status', RATE])
      expect(await statuses(Array.from({ length: 5 }, () => fleet.get(path)))).not.toContain(429)
  })
})

describe.skipIf(valkeySkipReason !== null)('limits of two gateways', () => {
  let server: ValkeyServer
  beforeAll(async () => {
    server = await startValkey()
  })
  afterAll(() => server?.remove())

  let meshes = 0
  async function openTwo(limits: object = {}, mesh: object = {}): Promise<readonly [Fleet, Fleet]> {
    const secret = 'abcdefghijklmnopqrstuvw'
    const name = `m${meshes++}`
    const valkey = { 'mesh-valkey': { url: server.url, timeoutMs: 5_000 } }
    const openOne = (at: number) =>
      open({ limits, reload: {}, mesh: { name: `gw-${at}`, mesh: name, secret, ...mesh }, ...valkey })
    return [await openOne(1), await openOne(2)]
  }

  /** Sends requests to both by turns. */
  const both = (fleets: readonly Fleet[], each: number) =>
    statuses(Array.from({ length: each * 2 }, (_, at) => chat(fleets[at % 2])))

  test('M31, M33: the global limit is seen and enforced by both together', async () => {
    const fleets = await openTwo()
    await fleets[0].post(RATE, { limit_per_second: 6 })
    await expect.poll(() => json(fleets[1].get(RATE))).toEqual({ limit_per_second: 6 })
    const [seen, used] = await inOneSecond(
      async () => [await both(fleets, 10), await json(fleets[1].get(`${RATE}/stats`))] as const,
    )
    expect([count(seen, 200), count(seen, 429)]).toEqual([6, 14])
    expect(used).toMatchObject({ current_count: 6, remaining: 0 })
  })

  test('PATCH /limits on one gateway counts for both; the tenant has its limit once', async () => {
    const fleets = await openTwo()
    const change = { tenants: { default: { requestsPerMinute: 7, tokensPerMinute: 1_000 } } }
    expect(await json(patch(fleets[0], change))).toMatchObject({ limits: change })
    await expect.poll(() => json(fleets[1].get('/limits'))).toMatchObject({ limits: change })
    await windowStart(60_000, 20_000)
    const seen = await both(fleets, 6)
    expect([count(seen, 200), count(seen, 429)]).toEqual([7, 5])
    // What the other gateway holds comes back.
    await expect
      .poll(() => json(fleets[1].get('/limits?tenant=ip:127.0.0.1')))
      .toMatchObject({
        use: {
          tenant: [
            { unit: 'requests', left: 0 },
            { unit: 'tokens', left: 1_000 - 7 * 10 },
          ],
        },
      })
  })

  test('a change is kept until a reload; then each gateway returns to its configuration', async () => {
    const fleets = await openTwo({ requestsPerSecond: 50 })
    const limits = (fleet: Fleet) => json(fleet.get('/limits'))
    await Promise.all([patch(fleets[0], { queueSize: 7 }), patch(fleets[1], { requestsPerSecond: 60 })])
    // No field of a concurrent change is lost.
    for (const fleet of fleets)
      await expect
        .poll(() => limits(fleet))
        .toMatchObject({ limits: { queueSize: 7, requestsPerSecond: 60 } })
    const refused = await patch(fleets[0], { queueSize: -1 })
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param: 'queueSize' } }])
    fleets[0].gateway.rewrite({ limits: { requestsPerSecond: 70 } })
    expect((await fleets[0].post('/config/apply', {})).status).toBe(200)
    expect(await limits(fleets[0])).toMatchObject({ limits: { queueSize: 100, requestsPerSecond: 70 } })
    await expect
      .poll(() => limits(fleets[1]))
      .toMatchObject({ limits: { queueSize: 100, requestsPerSecond: 50 } })
  })

  test('requestsPerSecond is that of both together, unless the operator does not share limits', async () => {
    const shared = await openTwo({ requestsPerSecond: 4 })
    expect(count(await inOneSecond(() => both(shared, 6)), 200)).toBe(4)
    const own = await openTwo({ requestsPerSecond: 4 }, { shares: { limits: false } })
    expect(count(await inOneSecond(() => both(own, 6)), 200)).toBe(8)
  })

  test('without the engine each gateway admits its share, and serves on', async () => {
    const own = await startValkey()
    const section = { mesh: 'away', secret: 'abcdefghijklmnopqrstuvw' }
    const openOne = (at: number) =>
      open({ mesh: { ...section, name: `gw-${at}` }, 'mesh-valkey': { url: own.url, timeoutMs: 500 } })
    const fleets = [await openOne(1), await openOne(2)]
    await fleets[0].post(RATE, { limit_per_second: 20 })
    await expect.poll(() => json(fleets[0].get('/ha/status'))).toMatchObject({ node_count: 2 })
    await own.kill()
    // The first request finds out.
    expect((await chat(fleets[0])).status).toBe(200)
    let admitted = 0
    const sinceMs = performance.now()
    while (admitted < 8 || performance.now() < sinceMs + 1_000) {
      admitted += count(await statuses([chat(fleets[0]), chat(fleets[0])]), 200)
      await pause(10)
    }
    // Half of 20 in each second.
    const seconds = (performance.now() - sinceMs) / 1_000
    expect(admitted).toBeLessThanOrEqual(10 + 10 * seconds)
    expect(await json(fleets[0].get(RATE))).toEqual({ limit_per_second: 20 })
    const refused = await fleets[0].post(RATE, { limit_per_second: 1 })
    expect(refused.status).toBe(503)
    await own.start()
    await expect.poll(() => json(fleets[0].get('/ha/health'))).toMatchObject({ status: 'healthy' })
    await own.remove()
  })
})
