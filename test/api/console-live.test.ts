/** The live stream of the console over real sockets. */
import { expect, onTestFinished, test } from 'vitest'
import { openSse, type SseStream } from '../support/sse-client.ts'
import { type FleetOptions, openFleet } from './fleet.ts'

const OPERATORS = { apiKey: 'k', controlPlaneKeys: ['ops:Ops:admin:boss', 'eye:Eye:user:look'] }

async function open(options: FleetOptions = {}) {
  const fleet = await openFleet({
    ...options,
    plugins: { auth: OPERATORS, console: {}, metrics: { port: 0 }, reload: {}, ...options.plugins },
  })
  const { gateway } = fleet
  const live = async (headers: Record<string, string>, query = '') => {
    const stream = openSse(`${gateway.url}/console/live${query}`, { headers })
    onTestFinished(() => stream.close())
    await expect.poll(() => stream.status).not.toBe(0)
    return stream
  }
  const signIn = async (key: string) => {
    const response = await fetch(`${gateway.url}/console/session`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
    })
    return { cookie: response.headers.get('set-cookie')?.split(';', 1)[0] ?? '' }
  }
  return { ...fleet, live, signIn }
}

const points = (stream: SseStream) =>
  stream.events.filter(({ event }) => event === 'point').map(({ data }) => JSON.parse(data))

test('an open page gets the history, then the traffic of each second', async () => {
  const { live, signIn, post } = await open()
  const stream = await live(await signIn('look'))
  expect([stream.status, stream.headers.get('content-type')]).toEqual([
    200,
    'text/event-stream; charset=utf-8',
  ])
  await expect.poll(() => stream.events[0]?.event).toBe('history')
  expect(JSON.parse(stream.events[0].data)).toEqual({ interval_ms: 5_000, points: expect.any(Array) })
  await expect.poll(() => points(stream).length).toBeGreaterThan(0)
  const chat = { model: 'test-model', messages: [{ role: 'user', content: 'hello' }] }
  const key = { authorization: 'Bearer k' }
  expect((await post('/v1/chat/completions', chat, key)).status).toBe(200)
  expect((await post('/v1/chat/completions', { ...chat, model: 'other' }, key)).status).toBe(404)
  await expect
    .poll(() => points(stream).find((point) => point.requests_per_s > 0 && point.ttft_ms !== null))
    .toMatchObject({
      ttft_ms: { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number) },
      duration_ms: { p50: expect.any(Number) },
      added_ms: { p50: expect.any(Number) },
      workers: { ready: 1, total: 1 },
      gateways: 1,
    })
  await expect
    .poll(() => points(stream).some(({ errors_per_s }) => errors_per_s.model_not_found > 0))
    .toBe(true)
  // Points come about once per second, whatever the interval of the history is.
  const { length } = points(stream)
  await expect.poll(() => points(stream).length).toBeGreaterThan(length + 2)
  const times = points(stream).map(({ at_ms }) => at_ms)
  expect(times.at(-1) - times[0]).toBeLessThan(3_000 * times.length)
  // Another page begins with the points so far.
  await expect
    .poll(async () => {
      const later = await live({ authorization: 'Bearer boss' }, '?scope=mesh')
      await expect.poll(() => later.events.length).toBeGreaterThan(0)
      const history = JSON.parse(later.events[0].data)
      later.close()
      return history.points.length
    })
    .toBeGreaterThan(0)
})

test('the stream ends when its key is removed, and others stay', async () => {
  const { gateway, live, signIn } = await open({ workers: [] })
  const [mine, other] = [await live(await signIn('look')), await live({ authorization: 'Bearer boss' })]
  await expect.poll(() => mine.events.length).toBeGreaterThan(0)
  gateway.rewrite({ auth: { ...OPERATORS, controlPlaneKeys: ['ops:Ops:admin:boss'] } })
  const applied = await gateway.post('/config/apply', {}, { authorization: 'Bearer boss' })
  expect(applied.status).toBe(200)
  await mine.done
  expect(mine.isWhole).toBe(true)
  expect(mine.events.at(-1)).toMatchObject({ event: 'session_ended', data: '{}' })
  const { length } = other.events
  await expect.poll(() => other.events.length).toBeGreaterThan(length)
})

test('a draining gateway ends the streams instead of waiting for them', async () => {
  const { gateway, live } = await open({ workers: [], kernel: { shutdown: { graceMs: 60_000 } } })
  const stream = await live({ authorization: 'Bearer boss' })
  await expect.poll(() => stream.events.length).toBeGreaterThan(0)
  const startedAtMs = performance.now()
  await gateway.stop()
  await stream.done
  expect(stream.isWhole).toBe(true)
  expect(performance.now() - startedAtMs).toBeLessThan(20_000)
})

test('the number of streams is limited, a closed one makes room, and a wrong scope is named', async () => {
  const { live } = await open({ workers: [] })
  const boss = { authorization: 'Bearer boss' }
  const streams = await Promise.all(Array.from({ length: 40 }, () => live(boss)))
  const accepted = streams.filter(({ status }) => status === 200)
  expect(accepted).toHaveLength(32)
  expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([200, 429]))
  accepted[0].close()
  await expect.poll(async () => (await live(boss)).status).toBe(200)
  const wrong = await live(boss, '?scope=%0d%0aa')
  expect(wrong.status).toBe(400)
  expect(wrong.headers.get('x-weir-error-code')).toBe('invalid_query')
})

test('only operators have access, and without metrics there is no stream', async () => {
  const { live, signIn } = await open({ workers: [] })
  expect((await live({})).status).toBe(401)
  expect((await live({ authorization: 'Bearer look' })).status).toBe(403)
  expect((await live({ ...(await signIn('boss')), 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  const { get } = await openFleet({ workers: [], plugins: { auth: {}, console: {}, metrics: false } })
  expect((await (await get('/console/session')).json()) as object).toMatchObject({
    features: ['chat', 'workers'],
  })
  expect((await get('/console/live')).status).toBe(404)
})
