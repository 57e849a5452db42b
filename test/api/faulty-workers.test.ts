/** Faulty workers among healthy ones: what clients see under each policy, and what operators are shown. */
import { expect, test } from 'vitest'
import {
  hangAnswer,
  jsonAnswer,
  rawAnswer,
  type ScriptedWorker,
  sseAnswer,
} from '../support/scripted-worker.ts'
import { textUntilCut } from '../support/text-until-cut.ts'
import { type Fleet, openFleet } from './fleet.ts'

const PATH = '/v1/chat/completions'
const CHAT = `POST ${PATH}`
const CHUNK = '{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}'
const WHOLE = {
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
}
/** Longer than a healthy worker takes on a busy machine. */
const LIMIT_MS = 1_000
const REQUESTS = 60

function serveChat(worker: ScriptedWorker): void {
  worker.script(CHAT, (request) =>
    (request.json() as { stream: boolean }).stream ? sseAnswer([CHUNK, '[DONE]']) : jsonAnswer(WHOLE),
  )
}

/** @returns true for a complete response */
async function ask(fleet: Fleet, nth: number): Promise<boolean> {
  const messages = [{ role: 'user', content: `${'word '.repeat(nth % 30)}${nth % 11}` }]
  const response = await fleet.post(
    PATH,
    { model: 'test-model', stream: nth % 2 === 0, messages },
    { 'x-weir-routing-key': String(nth) },
  )
  return response.ok && (await response.text()).includes('hi')
}

interface Traffic {
  readonly requests: number
  readonly failures: Readonly<Record<string, number>>
  readonly failure_share: number
  readonly is_stalled: boolean
  readonly duration_ms: number | null
  readonly ttft_ms: number | null
  readonly last_error: string | null
}

async function trafficOf(fleet: Fleet): Promise<Traffic[]> {
  const { workers } = (await (await fleet.get('/workers')).json()) as { workers: { traffic: Traffic }[] }
  return workers.map(({ traffic }) => traffic)
}

test.each([
  'round_robin',
  'random',
  'least_load',
  'power_of_two',
  'cache_aware',
  'prefix_hash',
  'consistent_hashing',
  'manual',
  'bucket',
])('%s: a wrong key, an HTML page and a worker that hangs beside one healthy worker', async (policy) => {
  const fleet = await openFleet({
    workers: [{}, { spec: { api_key: 'wrong-key' } }, {}, {}],
    kernel: {
      policy,
      upstream: { headMs: LIMIT_MS, firstTokenMs: LIMIT_MS },
      retry: { initialBackoffMs: 1, maxBackoffMs: 1 },
    },
  })
  const [healthy, wrongKey, page, hung] = fleet.workers
  serveChat(healthy)
  wrongKey.script(CHAT, jsonAnswer({ error: { message: 'no such key: wrong-key' } }, { status: 401 }))
  page.script(CHAT, rawAnswer('<html>sign in</html>', { headers: { 'content-type': 'text/html' } }))
  hung.script(CHAT, hangAnswer())
  const results: Promise<boolean>[] = []
  for (let nth = 0; nth < REQUESTS; nth++) {
    results.push(ask(fleet, nth))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const failed = (await Promise.all(results)).filter((isGood) => !isGood)
  expect(failed).toEqual([])
  const traffic = await trafficOf(fleet)
  for (const faulty of traffic.slice(1)) expect(faulty.requests).toBeLessThan(REQUESTS)
  expect(traffic[0]).toMatchObject({ failures: { answered: 0, silent: 0, unreachable: 0 }, last_error: null })
  expect(traffic[0].ttft_ms).toBeGreaterThan(0)
})

test('operators see the failures, times and last error of a worker, without its key', async () => {
  const fleet = await openFleet({
    workers: [{ spec: { api_key: 'wrong-key-1234', priority: 90 } }, {}],
    kernel: { retry: { initialBackoffMs: 20, maxBackoffMs: 20 } },
    plugins: { metrics: { port: 0 }, debug: {} },
  })
  const [faulty, healthy] = fleet.workers
  serveChat(healthy)
  faulty.script(
    CHAT,
    jsonAnswer({ error: { message: 'CUDA out of memory\u0007', key: 'wrong-key-1234' } }, { status: 503 }),
  )
  expect(await ask(fleet, 1)).toBe(true)
  const expected = 'status 503: {"error":{"message":"CUDA out of memory\\u0007","key":"[redacted]"}}'
  expect((await trafficOf(fleet))[0]).toMatchObject({
    requests: 1,
    failures: { answered: 1, silent: 0, unreachable: 0 },
    failure_share: 0.125,
    last_error: expected,
  })
  const page = await (await fetch(fleet.gateway.metricsUrl as string)).text()
  expect(page).toContain(`weir_worker_failures_total{worker="${faulty.url}",class="answered"} 1`)
  expect(page).toContain(`weir_worker_failure_ratio{worker="${faulty.url}"} 0.125`)
  expect(page).toMatch(/weir_worker_ttft_seconds\{worker="[^"]+"\} 0\.\d+/)
})

test('a worker whose streams stall gets no further requests while others are available', async () => {
  const fleet = await openFleet({
    workers: [{}, {}],
    kernel: { policy: 'round_robin', breaker: { stallMs: 500 } },
  })
  const [healthy, stuck] = fleet.workers
  serveChat(healthy)
  stuck.script(CHAT, hangAnswer())
  const first = [ask(fleet, 0), ask(fleet, 2)]
  await expect.poll(async () => (await trafficOf(fleet))[1].is_stalled).toBe(true)
  for (let nth = 0; nth < 6; nth++) expect(await ask(fleet, nth)).toBe(true)
  expect(stuck.requestsTo(CHAT)).toHaveLength(1)
  stuck.dropConnections()
  expect(await Promise.all(first)).toEqual([true, true])
})

test('a stream that hangs after its head ends within firstTokenMs and opens the breaker', async () => {
  const fleet = await openFleet({
    kernel: {
      upstream: { firstTokenMs: 200 },
      breaker: { failureThreshold: 2 },
      retry: { maxAttempts: 1 },
    },
  })
  fleet.workers[0].script(CHAT, sseAnswer([{ hang: true }]))
  for (let nth = 0; nth < 2; nth++) {
    const body = { model: 'test-model', stream: true, messages: [{ role: 'user', content: 'a' }] }
    const response = await fleet.post(PATH, body)
    expect(await textUntilCut(response)).toContain('first_token')
  }
  const { workers } = (await (await fleet.get('/workers')).json()) as { workers: { breaker: string }[] }
  expect(workers[0].breaker).toBe('open')
})

test.each([
  ['hangs', sseAnswer([{ hang: true }])],
  ['breaks', sseAnswer([{ drop: 'reset' }])],
] as const)(
  'a stream that %s after its head continues at another worker, also after heartbeats',
  async (_what, answer) => {
    const fleet = await openFleet({
      workers: [{ spec: { priority: 90 } }, {}],
      kernel: { upstream: { firstTokenMs: 500 }, http: { heartbeatMs: 100 } },
    })
    const [faulty, healthy] = fleet.workers
    faulty.script(CHAT, answer)
    serveChat(healthy)
    const body = {
      model: 'test-model',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'a long prompt '.repeat(5_000) }],
    }
    const response = await fleet.post(PATH, body)
    const text = await textUntilCut(response)
    expect(response.status).toBe(200)
    expect(text.replace(/^:.*\n\n?/gm, '')).toBe(`data: ${CHUNK}\n\ndata: [DONE]\n\n`)
    expect(healthy.requestsTo(CHAT)[0].json()).toEqual(body)
    expect((await trafficOf(fleet))[0].failures).toEqual({ answered: 0, silent: 1, unreachable: 0 })
  },
)

test('a continued stream ends with an error event if the other workers refuse it', async () => {
  const fleet = await openFleet({
    workers: [{ spec: { priority: 90 } }, {}],
    kernel: { upstream: { firstTokenMs: 500 }, http: { heartbeatMs: 100 }, retry: { maxAttempts: 2 } },
  })
  const [faulty, other] = fleet.workers
  faulty.script(CHAT, sseAnswer([{ hang: true }]))
  other.script(CHAT, jsonAnswer({ error: { message: 'overloaded' } }, { status: 503 }))
  const body = { model: 'test-model', stream: true, messages: [{ role: 'user', content: 'a' }] }
  const response = await fleet.post(PATH, body)
  expect(response.status).toBe(200)
  expect(await textUntilCut(response)).toContain('read_response_body_failed')
})
