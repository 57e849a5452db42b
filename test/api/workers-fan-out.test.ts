/** POST /flush_cache, GET /get_loads and the profile routes over real sockets. */
import { afterEach, describe, expect, test } from 'vitest'
import { startGateway } from '../support/gateway.ts'
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

async function openWorker(options: ScriptedWorkerOptions = {}): Promise<ScriptedWorker> {
  const worker = await startScriptedWorker(options)
  closers.push(() => worker.close())
  return worker
}

/** A gateway with these workers, in this order. */
async function openGateway(workers: readonly ScriptedWorker[], spec: object = {}): Promise<string> {
  const gateway = await startGateway({
    kernel: { auth: 'off' },
    plugins: { workers: { workers: workers.map(({ url }) => ({ url, ...spec })) } },
  })
  closers.push(() => gateway.stop())
  const endsAtMs = performance.now() + 30_000
  for (;;) {
    const list = (await (await fetch(`${gateway.url}/workers`)).json()) as { workers: { status: string }[] }
    const readyCount = list.workers.filter(({ status }) => status === 'ready').length
    if (readyCount === workers.length) return gateway.url
    if (performance.now() > endsAtMs) throw new Error(`${readyCount} of ${workers.length} workers are ready`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe('POST /flush_cache', () => {
  test('all flushed is 200 with exactly these members; any body is ignored', async () => {
    const workers = [await openWorker(), await openWorker()]
    for (const worker of workers) worker.script('POST /flush_cache', rawAnswer('flushed'))
    const url = await openGateway(workers, { api_key: 'wk-1' })
    const response = await fetch(`${url}/flush_cache`, { method: 'POST', body: '{not json' })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      status: 'success',
      message: expect.any(String),
      workers_flushed: 2,
      total_http_workers: 2,
      total_workers: 2,
    })
    for (const worker of workers) {
      expect(worker.requestsTo('POST /flush_cache')[0].header('authorization')).toBe('Bearer wk-1')
    }
  })

  test('no workers is 200 with zeros', async () => {
    const url = await openGateway([])
    const response = await fetch(`${url}/flush_cache`, { method: 'POST' })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      status: 'success',
      message: expect.any(String),
      workers_flushed: 0,
      total_http_workers: 0,
      total_workers: 0,
    })
  })

  test('some or all failed is 206 with the failures', async () => {
    const [good, bad, dead] = [await openWorker(), await openWorker(), await openWorker()]
    good.script('POST /flush_cache', rawAnswer(''))
    bad.script('POST /flush_cache', rawAnswer('no', { status: 500 }))
    const url = await openGateway([good, bad, dead])
    await dead.close()
    const response = await fetch(`${url}/flush_cache`, { method: 'POST' })
    expect(response.status).toBe(206)
    expect(await response.json()).toEqual({
      status: 'partial_success',
      message: expect.any(String),
      workers_flushed: 1,
      total_http_workers: 3,
      total_workers: 3,
      successful: [good.url],
      failed: [
        { worker: bad.url, error: expect.stringContaining('500') },
        { worker: dead.url, error: expect.any(String) },
      ],
    })
    good.script('POST /flush_cache', rawAnswer('', { status: 400 }))
    const none = await fetch(`${url}/flush_cache`, { method: 'POST' })
    expect(none.status).toBe(206)
    expect(await none.json()).toMatchObject({ workers_flushed: 0, successful: [] })
  })
})

describe('GET /get_loads', () => {
  const loads = async (url: string) => {
    const response = await fetch(`${url}/get_loads`)
    expect(response.status).toBe(200)
    return ((await response.json()) as { workers: Record<string, unknown>[] }).workers
  }

  test('load is the sum of used tokens over ranks, and -1 without details for a dead worker', async () => {
    const [busy, dead] = [await openWorker(), await openWorker()]
    const timestamp = '2026-01-02T03:04:05Z'
    busy.script(
      'GET /v1/loads',
      jsonAnswer({
        timestamp,
        dp_rank_count: 2,
        loads: [
          { dp_rank: 0, num_used_tokens: 1000, token_usage: 0.5 },
          { dp_rank: 1, num_used_tokens: 234 },
        ],
      }),
    )
    const url = await openGateway([busy, dead])
    await dead.close()
    expect(await loads(url)).toEqual([
      {
        worker: busy.url,
        load: 1234,
        details: {
          timestamp,
          dp_rank_count: 2,
          loads: [
            expect.objectContaining({ dp_rank: 0, num_used_tokens: 1000, token_usage: 0.5, utilization: 0 }),
            expect.objectContaining({ dp_rank: 1, num_used_tokens: 234, token_usage: 0 }),
          ],
        },
      },
      { worker: dead.url, load: -1 },
    ])
    expect(busy.requestsTo('GET /v1/loads')[0].path).toBe('/v1/loads?include=core,disagg,queues,memory')
  })

  test('vllm gauges have a ratio but no tokens: details with load -1', async () => {
    const worker = await openWorker({ shape: 'vllm' })
    worker.script('GET /metrics', rawAnswer('vllm:num_requests_running 3\nvllm:kv_cache_usage_perc 0.25\n'))
    const [entry] = await loads(await openGateway([worker]))
    expect(entry).toMatchObject({
      worker: worker.url,
      load: -1,
      details: { dp_rank_count: 1, loads: [{ num_running_reqs: 3, token_usage: 0.25 }] },
    })
  })

  test('an empty report counts as a failure', async () => {
    const worker = await openWorker()
    worker.script('GET /v1/loads', jsonAnswer({ loads: [] }))
    expect(await loads(await openGateway([worker]))).toEqual([{ worker: worker.url, load: -1 }])
  })

  test('no workers is an empty list', async () => {
    expect(await loads(await openGateway([]))).toEqual([])
  })
})

describe('POST /start_profile and /stop_profile', () => {
  const post = async (url: string, path: string, body?: string) => {
    const response = await fetch(url + path, { method: 'POST', body })
    return { status: response.status, json: await response.json() }
  }

  test('every engine receives the options unchanged; stop needs no body', async () => {
    const workers = [await openWorker(), await openWorker({ shape: 'vllm' })]
    for (const worker of workers)
      worker.script('POST /start_profile', rawAnswer('ok')).script('POST /stop_profile', rawAnswer('ok'))
    const url = await openGateway(workers, { api_key: 'wk-1' })
    const options = { num_steps: 5, activities: ['GPU'], with_stack: true, some_day: 1 }
    expect(await post(url, '/start_profile', JSON.stringify(options))).toEqual({
      status: 200,
      json: { status: 'success', message: expect.any(String), workers_profiled: 2, total_workers: 2 },
    })
    expect(await post(url, '/stop_profile')).toMatchObject({ status: 200, json: { workers_profiled: 2 } })
    for (const worker of workers) {
      const [start] = worker.requestsTo('POST /start_profile')
      expect(start.json()).toEqual(options)
      expect(start.header('authorization')).toBe('Bearer wk-1')
      expect(worker.requestsTo('POST /stop_profile')[0].body.length).toBe(0)
    }
  })

  test('a url, in any spelling, selects one worker; partial failures are 206, an unknown url 404', async () => {
    const [one, two] = [await openWorker(), await openWorker()]
    one.script('POST /start_profile', rawAnswer('ok'))
    const url = await openGateway([one, two])
    const start = (body?: object) => post(url, '/start_profile', body && JSON.stringify(body))
    expect(await start({ url: `${one.url}/` })).toMatchObject({
      status: 200,
      json: { workers_profiled: 1, total_workers: 1 },
    })
    expect(await start()).toEqual({
      status: 206,
      json: {
        status: 'partial_success',
        message: expect.any(String),
        workers_profiled: 1,
        total_workers: 2,
        successful: [one.url],
        failed: [{ worker: two.url, error: expect.stringContaining('404') }],
      },
    })
    expect(await start({ url: 'http://missing:1' })).toEqual({
      status: 404,
      json: {
        status: 'error',
        message: expect.stringContaining('missing'),
        workers_profiled: 0,
        total_workers: 0,
      },
    })
    expect(await start({ num_steps: -1 })).toMatchObject({
      status: 400,
      json: { error: { code: 'invalid_field' } },
    })
    expect(await post(url, '/start_profile', '{')).toMatchObject({ status: 400 })
    expect(await post(await openGateway([]), '/stop_profile')).toMatchObject({ status: 404 })
  })
})
