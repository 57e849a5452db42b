/** The global limit of requests, alone and over three gateways: M30–M39 of the mesh specification. */
import { describe, expect, it } from 'vitest'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../../support/scripted-worker.ts'
import { valkeySkipReason } from '../../support/valkey-server.ts'
import { eventually, type MeshGateway, openGateway, openMesh, type Reply, useValkey } from './mesh-fleet.ts'

const API = { authorization: 'Bearer api-key' }
const CHAT = { model: 'llama', messages: [{ role: 'user', content: 'Hello' }] }
const MESSAGE = { ...CHAT, max_tokens: 8 }
const engines = [
  { engine: 'alone', isShared: false },
  { engine: 'on Valkey', isShared: true },
]

describe.skipIf(valkeySkipReason !== null).each(engines)('the global limit, $engine', ({ isShared }) => {
  const valkey = useValkey()
  const openAll = () => openMesh(isShared ? valkey.server : null)
  const setLimit = (one: MeshGateway, limit_per_second: unknown) =>
    one.call('POST', '/ha/rate-limit', { limit_per_second })
  const limitOn = async (one: MeshGateway) => (await one.call('GET', '/ha/rate-limit')).body?.limit_per_second
  const stats = async (one: MeshGateway) => (await one.call('GET', '/ha/rate-limit/stats')).body
  const chat = (one: MeshGateway) => one.call('POST', '/v1/chat/completions', CHAT, API)

  async function withWorker(use: (all: MeshGateway[], worker: ScriptedWorker) => Promise<void>) {
    const worker = await startScriptedWorker({ models: ['llama'] })
    worker.script(
      'POST /v1/chat/completions',
      jsonAnswer({ id: 'x', object: 'chat.completion', choices: [] }),
    )
    const workers = [{ url: worker.url, runtime_type: 'sglang', models: [{ id: 'llama' }] }]
    const health = { disable_health_check: true }
    const all = await openMesh(isShared ? valkey.server : null, { plugins: { workers: { workers, health } } })
    for (const one of all) await eventually(async () => (await chat(one)).status === 200)
    try {
      await use(all, worker)
    } finally {
      await worker.close()
    }
  }
  /** Starts with a new second of this machine's clock, which is that of the engine. */
  const nextSecond = () => new Promise((resolve) => setTimeout(resolve, 1_020 - (Date.now() % 1_000)))
  const setEverywhere = async (all: readonly MeshGateway[], limit: number) => {
    expect((await setLimit(all[0], limit)).status).toBe(200)
    for (const one of all) await eventually(async () => (await limitOn(one)) === limit)
  }

  it('M30 GET /ha/rate-limit is 404 before it was set', async () => {
    const [one] = await openAll()
    const { status, body } = await one.call('GET', '/ha/rate-limit')
    expect([status, body.error.type]).toEqual([404, 'not_found'])
  })

  it('M31 POST /ha/rate-limit sets the limit of all gateways', async () => {
    const all = await openAll()
    const { status, body } = await setLimit(all[0], 5)
    expect([status, body]).toEqual([200, { status: 'updated', limit_per_second: 5 }])
    for (const one of all) await eventually(async () => (await limitOn(one)) === 5)
  })

  it('M32 Anything but a whole number from 0 is 400, and the previous limit stays', async () => {
    const [one] = await openAll()
    await setLimit(one, 7)
    for (const value of [-1, '5', 1.5, null, 2 ** 33])
      expect([value, (await setLimit(one, value)).status]).toEqual([value, 400])
    for (const body of [{}, [], 'no JSON', '"5"']) {
      const { status, body: reply } = await one.call('POST', '/ha/rate-limit', body)
      expect([body, status, reply.error.type]).toEqual([body, 400, 'bad_request'])
    }
    expect(await limitOn(one)).toBe(7)
  })

  it('M33 Of 60 quick requests at most 5 succeed in each second, the others are 429 with Retry-After', async () => {
    await withWorker(async (all) => {
      await setEverywhere(all, 5)
      await nextSecond()
      const secondNow = () => Math.floor(Date.now() / 1_000)
      const firstSecond = secondNow()
      const replies: { status: number; type?: string; retryAfter: string | null }[] = []
      const send = async (one: MeshGateway) => {
        const response = await fetch(`${one.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { ...API, 'content-type': 'application/json' },
          body: JSON.stringify(CHAT),
        })
        const { error } = (await response.json()) as { error?: { type: string } }
        const retryAfter = response.headers.get('retry-after')
        replies.push({ status: response.status, retryAfter, ...(error && { type: error.type }) })
      }
      await Promise.all(Array.from({ length: 60 }, (_, n) => send(all[n % all.length])))
      const seconds = secondNow() - firstSecond + 1
      const passed = replies.filter(({ status }) => status === 200)
      expect(passed.length).toBeLessThanOrEqual(5 * seconds)
      expect(passed.length).toBeGreaterThanOrEqual(1)
      const rejected = replies.filter(({ status }) => status !== 200)
      expect(rejected.length).toBeGreaterThan(0)
      for (const one of rejected)
        expect(one).toMatchObject({
          status: 429,
          type: 'rate_limit_error',
          retryAfter: expect.stringMatching(/^\d+$/),
        })
    })
  })

  it('M34 The 429 of /v1/messages has the shape of that API', async () => {
    await withWorker(async (all) => {
      await setEverywhere(all, 1)
      const send = () =>
        all[0].call('POST', '/v1/messages', MESSAGE, { ...API, 'anthropic-version': '2023-06-01' })
      const replies: Reply[] = await Promise.all(Array.from({ length: 12 }, send))
      const rejected = replies.filter(({ status }) => status === 429)
      expect(rejected.length).toBeGreaterThan(0)
      for (const { body } of rejected)
        expect(body).toMatchObject({
          type: 'error',
          error: { type: 'rate_limit_error', message: expect.any(String) },
        })
    })
  })

  it('M35, M36 Without a limit, or with 0, nothing is rejected and remaining is -1', async () => {
    await withWorker(async (all) => {
      expect(await stats(all[0])).toEqual({ limit_per_second: 0, current_count: 0, remaining: -1 })
      await setEverywhere(all, 0)
      const replies = await Promise.all(Array.from({ length: 30 }, (_, n) => chat(all[n % all.length])))
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
      expect(await stats(all[0])).toMatchObject({ limit_per_second: 0, remaining: -1 })
      expect(await limitOn(all[0])).toBe(0)
    })
  })

  it('M37, M38 Statistics count the requests of the current second, and start anew with the next', async () => {
    await withWorker(async (all) => {
      await setEverywhere(all, 10)
      await nextSecond()
      await Promise.all(Array.from({ length: 20 }, (_, n) => chat(all[n % all.length])))
      const { current_count: count, remaining } = await stats(all[0])
      expect(count).toBeLessThanOrEqual(10)
      expect(remaining).toBe(10 - count)
      await nextSecond()
      await eventually(async () => (await stats(all[0])).current_count === 0)
      expect(await stats(all[0])).toEqual({ limit_per_second: 10, current_count: 0, remaining: 10 })
    })
  })

  it('M39 Control-plane, /ha and public routes are never limited', async () => {
    const [one] = await openAll()
    await setLimit(one, 1)
    for (const path of ['/workers', '/ha/status', '/liveness', '/readiness', '/ha/rate-limit'])
      for (let count = 0; count < 10; count += 1)
        expect([path, (await one.call('GET', path)).status]).not.toEqual([path, 429])
  })

  it('Without the plugin limits the routes of the global limit are 503, and all others work', async () => {
    const server = isShared ? valkey.server : null
    const one = await openGateway('gw-1', server, { plugins: { limits: false } })
    for (const reply of [
      await setLimit(one, 5),
      await one.call('GET', '/ha/rate-limit'),
      await one.call('GET', '/ha/rate-limit/stats'),
    ]) {
      const message = 'this gateway enforces no global rate limit, since plugins.limits is false'
      expect([reply.status, reply.body]).toEqual([503, { error: { message, type: 'service_unavailable' } }])
    }
    expect((await one.call('GET', '/ha/status')).status).toBe(200)
  })
})

describe.skipIf(valkeySkipReason !== null)('burst in a mesh', () => {
  const valkey = useValkey()

  it('is refused at the start and by PATCH /limits if gateways share limits', async () => {
    const open = (burst: number, shares = {}) =>
      openGateway('gw-1', valkey.server, {
        plugins: { limits: { requestsPerSecond: 10, burst } },
        settings: { shares },
      })
    await expect(open(5)).rejects.toThrow(/'burst' of plugins.limits must be 0 \(got 5\)/)
    const shared = await open(0)
    const { status, body } = await shared.call('PATCH', '/limits', { burst: 3 })
    expect([status, body.error.param]).toEqual([400, 'burst'])
    expect((await shared.call('GET', '/limits')).body.limits.burst).toBe(0)
    const own = await open(5, { limits: false })
    expect((await own.call('PATCH', '/limits', { burst: 3 })).status).toBe(200)
  })
})
