/** One scrape after requests with every kind of outcome, parsed as Prometheus does. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type PrometheusFamily, parsePrometheusText } from '#shared'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { promtool } from '../support/promtool.ts'
import {
  dropAnswer,
  hangAnswer,
  jsonAnswer,
  type ScriptedWorker,
  sseAnswer,
  startScriptedWorker,
} from '../support/scripted-worker.ts'
import { openSse } from '../support/sse-client.ts'
import { openFleet } from './fleet.ts'

const CHAT = 'POST /v1/chat/completions'
const OK = jsonAnswer({ choices: [] })
const UNKNOWN_ID = '0198f0c2-5a7e-7c31-9b42-0d6f7b1e2a90'
/** Values that must not become labels. */
const FROM_CLIENTS = [
  'request-4711',
  'session-0815',
  'tenant-key-1',
  'shared-key-1',
  'invented-model',
  'word-of-the-prompt',
  UNKNOWN_ID,
]

const workers: Record<string, ScriptedWorker> = {}
const OPEN_WORK = [
  'weir_http_connections_active',
  'weir_http_inflight_requests',
  'weir_worker_connections_active',
  'weir_worker_requests_active',
  'weir_limits_concurrency_used',
  'weir_limits_queue_depth',
]
let gateway: TestGateway
let workerIds: string[] = []
let families: Map<string, PrometheusFamily>
/** Scraped while one request was in progress. */
let midway: Map<string, PrometheusFamily>

beforeAll(async () => {
  for (const name of ['chat', 'spare', 'sticky', 'broken', 'prefill', 'decode']) {
    workers[name] = await startScriptedWorker({ models: [`${name}-model`] })
  }
  gateway = await startGateway({
    kernel: {
      policy: 'least_load',
      retry: { maxAttempts: 2, initialBackoffMs: 1, maxBackoffMs: 2 },
      breaker: { failureThreshold: 2 },
      upstream: { headMs: 1_000, firstTokenMs: 1_000 },
    },
    plugins: {
      pairs: {},
      auth: { apiKey: 'shared-key-1', tenantKeys: ['one:tenant-key-1'] },
      health: {},
      limits: { maxConcurrentRequests: 1, queueSize: 0 },
      policies: {},
      chat: {},
      workers: { workers: specs() },
    },
  })
  workerIds = await whenReady(6)
  await makeTraffic()
  families = await scrape()
})

afterAll(async () => {
  await gateway?.stop()
  for (const worker of Object.values(workers)) await worker.close()
})

function specs(): object[] {
  const spec = (name: string, models: string[], more: object = {}) => ({
    url: workers[name].url,
    models: models.map((id) => ({ id, aliases: [`${id}-alias`] })),
    runtime_type: 'sglang',
    ...more,
  })
  return [
    spec('chat', ['chat-model'], { priority: 60 }),
    spec('spare', ['chat-model']),
    spec('sticky', ['sticky-model'], { labels: { policy: 'manual' } }),
    spec('broken', ['broken-model']),
    spec('prefill', ['pair-model'], { worker_type: 'prefill', bootstrap_port: 9_000 }),
    spec('decode', ['pair-model'], { worker_type: 'decode' }),
  ]
}

/** @returns the ids of all workers */
async function whenReady(count: number): Promise<string[]> {
  await vi.waitFor(
    async () =>
      expect(await (await fetch(`${gateway.url}/readiness`)).json()).toMatchObject({
        healthy_workers: count,
      }),
    { timeout: 30_000, interval: 20 },
  )
  const list = await fetch(`${gateway.url}/workers`, { headers: { authorization: 'Bearer shared-key-1' } })
  return ((await list.json()) as { workers: { id: string }[] }).workers.map(({ id }) => id)
}

const headers = (more: Record<string, string> = {}) => ({
  'content-type': 'application/json',
  authorization: 'Bearer tenant-key-1',
  'x-request-id': 'request-4711',
  ...more,
})

const chat = (model: string, more: Record<string, string> = {}) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: headers(more),
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'word-of-the-prompt' }] }),
  })

async function statusOf(reply: Promise<Response>): Promise<number> {
  const { status, body } = await reply
  await body?.cancel()
  return status
}

/** Sends requests with every kind of outcome, one after the other except at the limit. */
async function makeTraffic(): Promise<void> {
  for (const name of ['chat', 'spare', 'sticky', 'prefill', 'decode']) workers[name].script(CHAT, OK)
  const statuses: number[] = []
  const note = async (reply: Promise<Response>) => void statuses.push(await statusOf(reply))

  await note(chat('chat-model'))
  await note(chat('chat-model-alias'))
  workers.chat.once(CHAT, jsonAnswer({}, { status: 503 }))
  await note(chat('chat-model'))
  for (const key of ['session-0815', 'session-0815', 'session-0816']) {
    await note(chat('sticky-model', { 'x-weir-routing-key': key }))
  }
  await note(chat('pair-model'))
  workers.broken.script(CHAT, dropAnswer())
  await note(chat('broken-model'))
  await note(chat('broken-model'))
  await note(chat('invented-model'))
  workers.sticky.once(CHAT, jsonAnswer({ error: {} }, { status: 422 }))
  await note(chat('sticky-model'))
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 200, 502, 503, 404, 422])

  await stream()
  await refusals()
  await meetLimits()
}

/** One complete event stream, and one whose worker disconnects after the first event. */
async function stream(): Promise<void> {
  const open = () =>
    openSse(`${gateway.url}/v1/chat/completions`, {
      headers: headers(),
      body: { model: 'sticky-model', stream: true, messages: [{ role: 'user', content: 'hi' }] },
    })
  workers.sticky.once(CHAT, sseAnswer(['{"n":1}', '{"n":2}', '[DONE]']))
  await open().done
  workers.sticky.once(CHAT, sseAnswer(['{"n":1}', { drop: 'close' }]))
  await open().done
}

/** Requests rejected before routing: body, path, method, key. */
async function refusals(): Promise<void> {
  const send = (method: string, path: string, body?: string) =>
    statusOf(fetch(gateway.url + path, { method, headers: headers(), body }))
  expect(await send('POST', '/v1/chat/completions', '{"model":')).toBe(400)
  expect(await send('GET', `/nowhere/${UNKNOWN_ID}?key=tenant-key-1`)).toBe(404)
  expect(await send('BREW', '/nowhere')).toBe(404)
  expect([401, 403, 404]).toContain(await send('GET', `/workers/${UNKNOWN_ID}`))
}

/** One request holds the only permit, the next is rejected; the first reaches its timeout on both attempts. */
async function meetLimits(): Promise<void> {
  workers.spare.script(CHAT, hangAnswer())
  workers.chat.script(CHAT, hangAnswer())
  const held = statusOf(chat('chat-model'))
  await workers.chat.received(CHAT, 4)
  expect(await statusOf(chat('sticky-model'))).toBe(429)
  midway = await scrape()
  expect(await held).toBe(504)
}

async function scrape(): Promise<Map<string, PrometheusFamily>> {
  const reply = await fetch(gateway.metricsUrl as string)
  return new Map(parsePrometheusText(await reply.text()).map((family) => [family.name, family]))
}

/** Nonzero samples of one family, as `label=value,… number`, with workers by name. */
function samples(name: string, sampleName = name, from = families): string[] {
  const names = new Map(Object.entries(workers).map(([worker, { url }]) => [url, worker]))
  return (from.get(name)?.samples ?? [])
    .filter((sample) => sample.name === sampleName && Number(sample.value) !== 0)
    .map(({ labels, value }) => {
      const pairs = Array.from(labels, ([label, text]) => `${label}=${names.get(text) ?? text}`)
      return `${pairs.join()} ${value}`.trim()
    })
    .sort()
}

const count = (name: string) => samples(name, `${name}_count`)
const REGULAR = 'router_type=http,backend_type=regular'
const PAIR = 'router_type=http,backend_type=pd'

test.skipIf(promtool === null)('promtool check metrics has no finding', async () => {
  expect(families.size).toBeGreaterThan(40)
  const page = await (await fetch(gateway.metricsUrl as string)).text()
  expect(await promtool?.run(['check', 'metrics'], page)).toEqual({ code: 0, output: '' })
})

describe('a scrape has', () => {
  test('requests and responses by route template, for any paths and methods of clients', () => {
    expect(samples('weir_http_requests_total')).toEqual([
      expect.stringMatching(/^method=GET,path=\/readiness \d+$/),
      'method=GET,path=/workers 1',
      'method=GET,path=/workers/:worker_id 1',
      'method=OTHER,path=other 2',
      'method=POST,path=/v1/chat/completions 16',
    ])
    const chat = 'path=/v1/chat/completions,status_code='
    expect(samples('weir_http_responses_total').filter((line) => line.startsWith(chat))).toEqual([
      `${chat}200,error_code= 8`,
      `${chat}200,error_code=read_response_body_failed 1`,
      `${chat}400,error_code=json_parse_error 1`,
      `${chat}404,error_code=model_not_found 1`,
      `${chat}422,error_code= 1`,
      `${chat}429,error_code=queue_full 1`,
      `${chat}502,error_code=call_upstream_request_error 1`,
      `${chat}503,error_code=no_available_workers 1`,
      `${chat}504,error_code=call_upstream_timeout 1`,
    ])
    expect(count('weir_http_request_duration_seconds')).toContain('method=POST,path=/v1/chat/completions 16')
    expect(samples('weir_http_rate_limit_total')).toEqual(['result=allowed 15', 'result=rejected 1'])
  })

  test('routed requests by kind, canonical model and endpoint, also those without a worker', () => {
    const chat = `${REGULAR},connection_mode=http,model`
    expect(samples('weir_router_requests_total')).toEqual([
      `${PAIR},connection_mode=http,model=pair-model,endpoint=chat,streaming=false 1`,
      `${chat}=broken-model,endpoint=chat,streaming=false 2`,
      `${chat}=chat-model,endpoint=chat,streaming=false 4`,
      `${chat}=other,endpoint=chat,streaming=false 1`,
      `${chat}=sticky-model,endpoint=chat,streaming=false 4`,
      `${chat}=sticky-model,endpoint=chat,streaming=true 2`,
    ])
    expect(samples('weir_router_request_errors_total')).toEqual([
      `${chat}=broken-model,endpoint=chat,error_type=backend_error 2`,
      `${chat}=chat-model,endpoint=chat,error_type=timeout 1`,
      `${chat}=other,endpoint=chat,error_type=no_workers 1`,
      `${chat}=sticky-model,endpoint=chat,error_type=backend_error 1`,
      `${chat}=sticky-model,endpoint=chat,error_type=validation_error 1`,
    ])
    expect(count('weir_router_request_duration_seconds')).toEqual([
      `${PAIR},connection_mode=http,model=pair-model,endpoint=chat 1`,
      `${chat}=broken-model,endpoint=chat 2`,
      `${chat}=chat-model,endpoint=chat 4`,
      `${chat}=sticky-model,endpoint=chat 6`,
    ])
    // Of each request once, whatever the number of its attempts.
    expect(count('weir_router_overhead_seconds')).toEqual([
      `${PAIR},model=pair-model,endpoint=chat 1`,
      `${REGULAR},model=broken-model,endpoint=chat 2`,
      `${REGULAR},model=chat-model,endpoint=chat 4`,
      `${REGULAR},model=sticky-model,endpoint=chat 6`,
    ])
    expect(count('weir_router_ttft_seconds')).toEqual([
      `${PAIR},model=pair-model,endpoint=chat 1`,
      `${REGULAR},model=chat-model,endpoint=chat 3`,
      `${REGULAR},model=sticky-model,endpoint=chat 4`,
    ])
    expect(count('weir_router_generation_duration_seconds')).toEqual([
      `${REGULAR},model=sticky-model,endpoint=chat 1`,
    ])
  })

  test('attempts: worker responses, retries and back-off', () => {
    expect(samples('weir_router_upstream_responses_total')).toEqual([
      'router_type=http,status_code=0,error_code=first_byte_timeout 2',
      'router_type=http,status_code=0,error_code=reset 3',
      'router_type=http,status_code=200,error_code= 9',
      'router_type=http,status_code=200,error_code=reset 1',
      'router_type=http,status_code=422,error_code= 1',
      'router_type=http,status_code=503,error_code= 1',
    ])
    expect(samples('weir_worker_errors_total')).toEqual([
      'worker_type=regular,connection_mode=http,error_type=first_byte_timeout 2',
      'worker_type=regular,connection_mode=http,error_type=reset 4',
    ])
    expect(samples('weir_worker_retries_total')).toEqual(['worker_type=regular,endpoint=chat 4'])
    expect(samples('weir_worker_retries_exhausted_total')).toEqual(['worker_type=regular,endpoint=chat 3'])
    expect(count('weir_worker_retry_backoff_seconds')).toEqual(['attempt=2 4'])
    expect(count('weir_pd_prefill_duration_seconds')).toEqual([
      'backend_type=pd,model=pair-model,runtime=sglang 1',
    ])
    expect(count('weir_pd_ttft_seconds')).toEqual(['backend_type=pd,model=pair-model,runtime=sglang 1'])
  })

  test('picks by policy, and the number of sessions per worker', () => {
    const regular = 'worker_type=regular,connection_mode=http,model'
    expect(samples('weir_worker_selection_total')).toEqual([
      'worker_type=decode,connection_mode=http,model=pair-model,policy=least_load 1',
      'worker_type=prefill,connection_mode=http,model=pair-model,policy=least_load 1',
      `${regular}=broken-model,policy=least_load 3`,
      `${regular}=chat-model,policy=least_load 6`,
      `${regular}=sticky-model,policy=manual 6`,
    ])
    expect(samples('weir_manual_policy_branch_total')).toEqual([
      'branch=no_routing_id 3',
      'branch=occupied_hit 1',
      'branch=vacant 2',
    ])
    expect(samples('weir_manual_policy_cache_entries')).toEqual(['2'])
    expect(samples('weir_worker_routing_keys_active')).toEqual(['worker=sticky 2'])
  })

  test('workers: pool, health, probes and breakers', () => {
    expect(samples('weir_worker_pool_size')).toEqual([
      'worker_type=decode,connection_mode=http,model=pair-model 1',
      'worker_type=prefill,connection_mode=http,model=pair-model 1',
      'worker_type=regular,connection_mode=http,model=broken-model 1',
      'worker_type=regular,connection_mode=http,model=chat-model 2',
      'worker_type=regular,connection_mode=http,model=sticky-model 1',
    ])
    const names = Object.keys(workers).sort()
    expect(samples('weir_worker_health')).toEqual(names.map((name) => `worker=${name} 1`))
    // At least one of each; one whose breaker is open is probed again.
    expect(samples('weir_worker_health_checks_total').join()).toMatch(
      /worker_type=regular,result=success ([4-9]|\d\d)/,
    )
    expect(samples('weir_worker_cb_state')).toEqual(['worker=broken 1', 'worker=chat 1'])
    expect(samples('weir_worker_cb_transitions_total')).toEqual([
      'worker=broken,from=closed,to=open 1',
      'worker=chat,from=closed,to=open 1',
    ])
    expect(samples('weir_worker_cb_outcomes_total')).toContain('worker=chat,outcome=failure 2')
    expect(samples('weir_worker_cb_consecutive_failures')).toContain('worker=chat 2')
  })

  test('the build, and the memory of the thread by kind', () => {
    expect(samples('weir_build_info')).toEqual([`version=0.1.0,node_version=${process.versions.node} 1`])
    const memory = samples('weir_thread_memory_bytes').map((line) => line.split(' '))
    const kinds = ['array_buffers', 'external', 'heap_total', 'heap_used']
    expect(memory.map(([labels]) => labels)).toEqual(kinds.map((kind) => `thread=0,kind=${kind}`))
    for (const [, bytes] of memory) expect(Number(bytes)).toBeGreaterThan(100_000)
  })

  test('open work, while it is in progress', () => {
    expect(OPEN_WORK.map((name) => samples(name, name, midway))).toEqual([
      ['1'],
      ['age_over=0,age_up_to=30 1'],
      ['worker_type=regular,connection_mode=http 1'],
      ['worker=chat 1'],
      ['1'],
      [],
    ])
  })

  test('no open work after everything has ended', () => {
    for (const name of OPEN_WORK)
      expect([name, families.get(name)?.type, samples(name)]).toEqual([name, 'gauge', []])
  })

  test('no name, key, id, path or query of a client or request in any label', () => {
    const texts = new Set<string>()
    for (const { samples: all } of families.values()) {
      for (const { labels } of all) for (const text of labels.values()) texts.add(text)
    }
    expect(texts.size).toBeGreaterThan(50)
    const hidden = [...FROM_CLIENTS, ...workerIds]
    expect([...texts].filter((text) => hidden.some((one) => text.includes(one)))).toEqual([])
  })

  test('a help text and a valid Prometheus name for each family', () => {
    for (const { name, type, help } of families.values()) {
      expect(name).toMatch(/^weir_[a-z0-9_]+$/)
      expect([name, type === 'counter']).toEqual([name, name.endsWith('_total')])
      expect(help, name).not.toBe('')
    }
  })
})

test('a request that has been open for 61 s is in the bucket from 60 to 180 s only', async () => {
  const { gateway: own, workers: engines } = await openFleet()
  engines[0].script(CHAT, sseAnswer(['{"n":1}', { hang: true }]))
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    const stream = openSse(`${own.url}/v1/chat/completions`, {
      body: { model: 'test-model', stream: true, messages: [{ role: 'user', content: 'hi' }] },
    })
    await stream.receive(1)
    vi.advanceTimersByTime(61_000)
    const text = await (await fetch(own.metricsUrl as string)).text()
    const bands = text.match(/^weir_http_inflight_requests.* [1-9]\d*$/gm)
    expect(bands).toEqual(['weir_http_inflight_requests{age_over="60",age_up_to="180"} 1'])
    stream.close()
  } finally {
    vi.useRealTimers()
  }
})
