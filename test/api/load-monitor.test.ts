/** Engine load reports: used by policies, exposed as metrics. */
import { afterEach, expect, test } from 'vitest'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import {
  jsonAnswer,
  rawAnswer,
  type ScriptedWorker,
  type ScriptedWorkerOptions,
  startScriptedWorker,
} from '../support/scripted-worker.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const CHAT = 'POST /v1/chat/completions'
const LOADS = 'GET /v1/loads'

async function openEngine(options: ScriptedWorkerOptions = {}): Promise<ScriptedWorker> {
  const engine = await startScriptedWorker(options)
  closers.push(() => engine.close())
  return engine
}

/** @param policy default policy of the gateway */
async function openGateway(
  engines: readonly ScriptedWorker[],
  policy: string,
  section: object = {},
  policies: object = {},
): Promise<TestGateway> {
  const workers = engines.map(({ url }) => ({ url, models: [{ id: 'test-model' }] }))
  const gateway = await startGateway({
    kernel: { auth: 'off', policy },
    plugins: {
      health: {},
      policies,
      chat: {},
      workers: { workers, loadMonitorIntervalSecs: 1, ...section },
    },
  })
  closers.push(() => gateway.stop())
  return gateway
}

const tokens = (used: number) =>
  jsonAnswer({ loads: [{ num_used_tokens: used, max_total_num_tokens: 1_000, num_running_reqs: 2 }] })

async function chat({ url }: TestGateway): Promise<number> {
  const body = JSON.stringify({ model: 'test-model', messages: [{ role: 'user', content: 'hi' }] })
  return (await fetch(url + CHAT.slice(5), { method: 'POST', body })).status
}

async function metricsOf({ metricsUrl }: TestGateway): Promise<string[]> {
  const text = await (await fetch(metricsUrl as string)).text()
  return text.split('\n').filter((line) => line.startsWith('weir_engine_'))
}

/** Polls until the value passes. */
async function until<T>(read: () => Promise<T>, passes: (value: T) => boolean): Promise<T> {
  const endsAtMs = performance.now() + 30_000
  for (;;) {
    const value = await read()
    if (passes(value)) return value
    if (performance.now() > endsAtMs) throw new Error(`it stays ${JSON.stringify(value)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

test('with reports of 0.9 and 0.1, power_of_two always picks the second', async () => {
  const [full, free] = [await openEngine(), await openEngine()]
  full.script(LOADS, tokens(900))
  free.script(LOADS, tokens(100))
  const gateway = await openGateway([full, free], 'power_of_two')
  await Promise.all([full.received(LOADS, 2), free.received(LOADS, 2)])
  for (let count = 0; count < 20; count++) expect(await chat(gateway)).toBe(200)
  expect(free.requestsTo(CHAT).length).toBe(20)
})

test('engines are polled only if a policy reads reports', async () => {
  const [polled, unpolled] = [await openEngine(), await openEngine()]
  for (const engine of [polled, unpolled]) engine.script(LOADS, tokens(1))
  await openGateway([unpolled], 'round_robin')
  await openGateway([polled], 'cache_aware', {}, { cacheAware: { balanceTokenUsageThreshold: 0.5 } })
  await polled.received(LOADS, 2)
  expect(unpolled.requestsTo(LOADS)).toEqual([])
})

test("engine metrics show each engine's report, and are removed with the worker", async () => {
  const [one, two] = [await openEngine(), await openEngine({ shape: 'vllm' })]
  one.script(
    LOADS,
    jsonAnswer({
      loads: [
        {
          dp_rank: 0,
          num_running_reqs: 3,
          num_waiting_reqs: 4,
          token_usage: 0.5,
          gen_throughput: 60,
          cache_hit_rate: 0.7,
        },
        { dp_rank: 1, num_running_reqs: 1, token_usage: 0.25 },
      ],
    }),
  )
  two.script('GET /metrics', rawAnswer('vllm:num_requests_running 5\nvllm:num_requests_waiting 6\n'))
  const gateway = await openGateway([one, two], 'round_robin', { engineMetrics: true })
  const lines = await until(
    () => metricsOf(gateway),
    (all) => all.some((line) => line.includes(one.url)) && all.some((line) => line.includes(two.url)),
  )
  const series = (name: string, engine: ScriptedWorker, rank: number, value: number) =>
    `weir_engine_${name}{worker="${engine.url}",model="test-model",dp_rank="${rank}"} ${value}`
  expect(lines).toEqual(
    expect.arrayContaining([
      series('running_requests', one, 0, 3),
      series('waiting_requests', one, 0, 4),
      series('token_usage', one, 0, 0.5),
      series('gen_throughput', one, 0, 60),
      series('cache_hit_rate', one, 0, 0.7),
      series('running_requests', one, 1, 1),
      series('token_usage', one, 1, 0.25),
      series('running_requests', two, 0, 5),
      series('waiting_requests', two, 0, 6),
    ]),
  )
  expect(lines.some((line) => line.startsWith('weir_engine_token_usage') && line.includes(two.url))).toBe(
    false,
  )

  const list = (await (await fetch(`${gateway.url}/workers`)).json()) as {
    workers: { id: string; url: string }[]
  }
  const id = list.workers.find(({ url }) => url === one.url)?.id
  await fetch(`${gateway.url}/workers/${id}`, { method: 'DELETE' })
  const left = await until(
    () => metricsOf(gateway),
    (all) => !all.some((line) => line.includes(one.url)),
  )
  expect(left.some((line) => line.includes(two.url))).toBe(true)
})

test('an engine without a report route is polled once and then not for a while', async () => {
  const [mute, talking] = [await openEngine(), await openEngine()]
  talking.script(LOADS, tokens(1))
  await openGateway([mute, talking], 'least_load')
  await talking.received(LOADS, 4)
  expect(mute.requestsTo(LOADS).length).toBe(1)
  expect(mute.requestsTo('GET /metrics').length).toBe(1)
})

test('engines of pairs report the KV transfer, and a report without it removes the series', async () => {
  const [prefill, decode] = [await openEngine(), await openEngine()]
  const report = (disaggregation: object | undefined) =>
    jsonAnswer({ loads: [{ dp_rank: 0, num_running_reqs: 2, disaggregation }] })
  const common = { kv_transfer_speed_gb_s: 12.5, kv_transfer_latency_ms: 3.5 }
  prefill.script(
    LOADS,
    report({ mode: 'prefill', prefill_prealloc_queue_reqs: 2, prefill_inflight_queue_reqs: 3, ...common }),
  )
  decode.script(
    LOADS,
    report({
      mode: 'decode',
      decode_prealloc_queue_reqs: 1,
      decode_transfer_queue_reqs: 4,
      decode_retracted_queue_reqs: 'many',
    }),
  )
  const gateway = await openGateway([prefill, decode], 'round_robin', { engineMetrics: true })
  const pairLines = async () =>
    (await metricsOf(gateway)).filter((line) => line.includes('weir_engine_pd_')).sort()
  const of = (engine: ScriptedWorker, role: string) => `{worker="${engine.url}",role="${role}",dp_rank="0"}`
  const expected = [
    `weir_engine_pd_decode_queue_reqs${of(decode, 'decode')} 5`,
    `weir_engine_pd_kv_transfer_latency_ms${of(prefill, 'prefill')} 3.5`,
    `weir_engine_pd_kv_transfer_speed_gb_s${of(prefill, 'prefill')} 12.5`,
    `weir_engine_pd_prefill_queue_reqs${of(prefill, 'prefill')} 5`,
  ]
  expect(await until(pairLines, ({ length }) => length === expected.length)).toEqual(expected)
  prefill.script(LOADS, report(undefined))
  expect(await until(pairLines, ({ length }) => length === 1)).toEqual(expected.slice(0, 1))
})

test('an overloaded engine gets no requests while others are free; if all are, requests are spread, or rejected with shed', async () => {
  const waiting = (count: number) => jsonAnswer({ loads: [{ num_running_reqs: 1, num_waiting_reqs: count }] })
  const engines = [await openEngine(), await openEngine()]
  const counts = () => engines.map((engine) => engine.requestsTo(CHAT).length)
  const pairs: [TestGateway, boolean][] = []
  for (const shed of [false, true])
    pairs.push([await openGateway(engines, 'round_robin', { overload: { waitingRequests: 4, shed } }), shed])

  for (const [gateway, shed] of pairs) {
    const takesFrom = async (states: readonly number[]) => {
      for (const [at, engine] of engines.entries()) engine.script(LOADS, waiting(states[at]))
      return async () => {
        const before = counts()
        const statuses = new Set<number>()
        for (let i = 0; i < 6; i++) statuses.add(await chat(gateway))
        return JSON.stringify([[...statuses], counts().map((count, at) => count - before[at])])
      }
    }
    const passesOver = await takesFrom([4, 3])
    await until(passesOver, (seen) => seen === '[[200],[0,6]]')
    const bothBusy = await takesFrom([4, 4])
    await until(bothBusy, (seen) => seen === (shed ? '[[503],[0,0]]' : '[[200],[3,3]]'))
    if (shed) {
      const body = JSON.stringify({ model: 'test-model', messages: [{ role: 'user', content: 'hi' }] })
      const refused = await fetch(gateway.url + CHAT.slice(5), { method: 'POST', body })
      expect(refused.headers.get('x-weir-error-code')).toBe('worker_overload_protection_shed')
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      expect(((await refused.json()) as { error: { code: string } }).error.code).toBe(
        'worker_overload_protection_shed',
      )
    }
    const bothFree = await takesFrom([0, 0])
    await until(bothFree, (seen) => seen === '[[200],[3,3]]')
  }
})
