import { expect, test } from 'vitest'
import { ThreadMetrics } from '../../../../kernel/observe/metrics.ts'
import { difference, FAMILIES, join, readTotals, type Sample, sampleValidator, toPoint } from './sample.ts'

const WORKERS = { inFlight: 3, ready: 1, total: 2 }
const isServing = (path: string) => path === '/v1/chat/completions'

/** The metrics that a sample reads, of one thread. */
function openMetrics() {
  const metrics = new ThreadMetrics()
  const router = ['router_type', 'backend_type', 'model', 'endpoint']
  const requests = metrics.counter({ name: 'weir_http_requests_total', help: '', labels: ['method', 'path'] })
  const responses = metrics.counter({
    name: 'weir_http_responses_total',
    help: '',
    labels: ['path', 'status_code', 'error_code'],
  })
  const tokens = metrics.counter({
    name: 'weir_router_tokens_total',
    help: '',
    labels: [...router, 'token_type'],
  })
  const ttft = metrics.histogram({ name: 'weir_router_ttft_seconds', help: '', labels: router })
  const queue = metrics.gauge({ name: 'weir_limits_queue_depth', help: '' }).labels()
  return {
    request: (path: string, status: number, code = '') => {
      requests.labels('POST', path).inc()
      responses.labels(path, String(status), code).inc()
    },
    tokens: (model: string, type: string, count: number) =>
      tokens.labels('http', 'regular', model, 'chat', type).inc(count),
    ttft: (model: string, seconds: number) => ttft.labels('http', 'regular', model, 'chat').observe(seconds),
    queue,
    totals: () => readTotals(metrics.snapshot(FAMILIES), isServing),
  }
}

const bounds = { ttft: [1, 2, 4], itl: [], duration: [], added: [] }
const empty: Sample = {
  intervalMs: 1_000,
  requests: 0,
  errors: {},
  inputTokens: 0,
  outputTokens: 0,
  ttft: null,
  itl: null,
  duration: null,
  added: null,
  inFlight: 0,
  queued: 0,
  ready: 0,
  total: 0,
}

test('a point has the rates since the last reading, by cause, over all models', () => {
  const metrics = openMetrics()
  const chat = '/v1/chat/completions'
  metrics.request(chat, 200)
  metrics.ttft('a', 100)
  const before = metrics.totals()
  for (let count = 0; count < 4; count++) metrics.request(chat, 200)
  metrics.request(chat, 429, 'queue_full')
  metrics.request(chat, 500)
  metrics.request('/workers', 401, 'invalid_api_key')
  metrics.tokens('a', 'input', 100)
  metrics.tokens('b', 'input', 20)
  metrics.tokens('b', 'output', 8)
  metrics.tokens('b', 'cached', 5)
  metrics.queue.value = 7
  for (const model of ['a', 'b']) for (let count = 0; count < 50; count++) metrics.ttft(model, 0.2)
  const after = metrics.totals()
  const sample = difference(before, after, WORKERS, 2_000)
  const { histograms } = after
  const point = toPoint(5, [sample], { ...bounds, ttft: histograms.ttft.bounds })
  expect(point).toMatchObject({
    at_ms: 5,
    requests_per_s: 3,
    errors_per_s: { queue_full: 0.5, status_500: 0.5 },
    itl_ms: null,
    in_flight: 3,
    queued: 7,
    input_tokens_per_s: 60,
    output_tokens_per_s: 4,
    workers: { ready: 1, total: 2 },
    gateways: 1,
  })
  // All observations are in the bucket from 0.1 to 0.25 seconds.
  expect(point.ttft_ms).toEqual({ p50: 175, p95: 242.5, p99: 248.5 })
})

test('percentiles are linear within a bucket, and the last bound above all of them', () => {
  const at = (ttft: number[] | null) => toPoint(0, [{ ...empty, ttft }], bounds).ttft_ms
  expect(at(null)).toBeNull()
  expect(at([0, 100, 0, 0])).toEqual({ p50: 1_500, p95: 1_950, p99: 1_990 })
  expect(at([50, 0, 50, 0])).toEqual({ p50: 1_000, p95: 3_800, p99: 3_960 })
  expect(at([0, 0, 0, 9])).toEqual({ p50: 4_000, p95: 4_000, p99: 4_000 })
})

test('samples of a gateway are joined in time, those of several gateways are added up', () => {
  const first = { ...empty, requests: 10, errors: { a: 1 }, ttft: [1, 0, 0, 0], inFlight: 9 }
  const second = { ...empty, requests: 20, errors: { a: 1, b: 2 }, ttft: [0, 1, 0, 0], inFlight: 4 }
  const joined = join([first, second])
  expect(joined).toMatchObject({
    intervalMs: 2_000,
    requests: 30,
    errors: { a: 2, b: 2 },
    ttft: [1, 1, 0, 0],
    inFlight: 4,
  })
  // The intervals of gateways differ.
  expect(toPoint(0, [first, joined], bounds)).toMatchObject({
    requests_per_s: 25,
    errors_per_s: { a: 2, b: 1 },
    in_flight: 13,
    gateways: 2,
  })
  // A gateway with other buckets counts in everything else.
  expect(toPoint(0, [first, { ...second, ttft: [1, 1] }], bounds).ttft_ms?.p50).toBe(500)
})

test('a sample is bounded, whatever the causes are named', () => {
  const metrics = openMetrics()
  const before = metrics.totals()
  for (let cause = 0; cause < 100; cause++)
    metrics.request('/v1/chat/completions', 500, cause === 0 ? '__proto__' : `cause_${cause}`)
  metrics.request('/v1/chat/completions', 500, '__proto__')
  const { errors } = difference(before, metrics.totals(), WORKERS, 1_000)
  expect(Object.keys(errors)).toHaveLength(21)
  expect(Object.entries(errors)[0]).toEqual(['__proto__', 2])
  expect(errors.other).toBe(80)
})

test('a reading that is lower than the last one, after a thread has died, counts as zero', () => {
  const metrics = openMetrics()
  metrics.request('/v1/chat/completions', 500)
  metrics.ttft('a', 1)
  const high = metrics.totals()
  const low = openMetrics().totals()
  expect(difference(high, low, WORKERS, 1_000)).toMatchObject({ requests: 0, errors: {}, ttft: null })
})

test('samples of other gateways are checked', () => {
  expect(sampleValidator.problem(JSON.parse(JSON.stringify(empty)))).toBeNull()
  const wrong: unknown[] = [
    null,
    {},
    { ...empty, intervalMs: 0 },
    { ...empty, requests: -1 },
    { ...empty, requests: '1' },
    { ...empty, errors: { a: 'b' } },
    { ...empty, errors: Object.fromEntries(Array.from({ length: 22 }, (_, index) => [index, 1])) },
    { ...empty, ttft: Array.from({ length: 101 }, () => 1) },
  ]
  for (const value of wrong) expect(sampleValidator.problem(value)).not.toBeNull()
})
