/** The metrics about requests, routing, workers and the process, seen through snapshots. */
import { afterEach, expect, test, vi } from 'vitest'
import type { WorkerFigures, WorkerStatus } from '#kernel'
import { LabelLimit, modelLabelLimit } from '#shared'
import type { HistogramFamily, ValueFamily } from '../../../kernel/contracts/metric.ts'
import { ThreadMetrics } from '../../../kernel/observe/metrics.ts'
import { workerFigures } from '../../../test/support/worker-figures.ts'
import { HttpMetrics } from './http-metrics.ts'
import { declareEventLoopMetrics, declareProcessMetrics } from './process-metrics.ts'
import { RouterMetrics, routerErrorType, routerKinds } from './router-metrics.ts'
import { declareOpenRequestAges } from './traffic-metrics.ts'
import { WorkerMetrics } from './worker-metrics.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** Non-zero values of one family, as `a,b value`. */
function values(metrics: ThreadMetrics, name: string): string[] {
  const family = metrics.snapshot().find((one) => one.name === name) as ValueFamily
  return family.series
    .filter(({ value }) => value !== 0)
    .map(({ labels, value }) => `${labels.join()} ${value}`)
}

function count(metrics: ThreadMetrics, name: string): string[] {
  const family = metrics.snapshot().find((one) => one.name === name) as HistogramFamily
  return family.series.map(({ labels, count, sum }) => `${labels.join()} ${count} ${sum}`)
}

test('a request counts on arrival, while it runs, and by response', () => {
  const metrics = new ThreadMetrics()
  const http = new HttpMetrics(metrics)
  const route = http.forRoute('POST', '/v1/chat/completions')
  route.onRequest()
  route.onRequest()
  route.onRequest()
  expect(values(metrics, 'weir_http_connections_active')).toEqual([' 3'])
  route.onDone(200, null, 0.5)
  route.onDone(200, null, 0.5)
  route.onDone(503, 'no_workers', 1)
  expect(values(metrics, 'weir_http_connections_active')).toEqual([])
  expect(values(metrics, 'weir_http_requests_total')).toEqual(['POST,/v1/chat/completions 3'])
  expect(values(metrics, 'weir_http_responses_total')).toEqual([
    '/v1/chat/completions,200, 2',
    '/v1/chat/completions,503,no_workers 1',
  ])
  expect(count(metrics, 'weir_http_request_duration_seconds')).toEqual(['POST,/v1/chat/completions 3 2'])
})

test('unmatched paths count as other and unusual methods as OTHER', () => {
  const metrics = new ThreadMetrics()
  const http = new HttpMetrics(metrics)
  http.forRoute('BREW', null).onRequest()
  http.forRoute('MASH', null).onRequest()
  expect(http.forRoute('BREW', null)).toBe(http.forRoute('MASH', null))
  expect(values(metrics, 'weir_http_requests_total')).toEqual(['OTHER,other 2'])
})

test('open requests are counted in the bucket of their age', () => {
  vi.useFakeTimers({ now: 0 })
  vi.advanceTimersByTime(100_000_000)
  const metrics = new ThreadMetrics()
  let starts = [0, 30, 31, 61, 600, 90_000].map((ageSeconds) => performance.now() - ageSeconds * 1000)
  declareOpenRequestAges(metrics, () => starts)
  const name = 'weir_http_inflight_requests'
  expect(values(metrics, name)).toEqual(['0,30 2', '30,60 1', '60,180 1', '300,600 1', '86400,+Inf 1'])
  starts = []
  expect(values(metrics, name)).toEqual([])
  expect((metrics.snapshot()[0] as ValueFamily).series).toHaveLength(12)
})

test('routed requests count by kind, model, endpoint and streaming', () => {
  const metrics = new ThreadMetrics()
  const router = new RouterMetrics(metrics, modelLabelLimit())
  const routed = router.forRequest(routerKinds('http').regular, 'llama', 'chat', true)
  expect(router.forRequest(routerKinds('http').regular, 'llama', 'chat', true)).toBe(routed)
  routed.requests.inc()
  routed.firstToken.observe(0.25)
  routed.generation?.observe(1.5)
  routed.duration.observe(2)
  const other = router.forRequest(routerKinds('grpc').regular, 'llama', 'chat', false)
  other.requests.inc()
  other.generation?.observe(1)
  other.duration.observe(1)
  other.countError('timeout')
  expect(values(metrics, 'weir_router_requests_total')).toEqual([
    'http,regular,http,llama,chat,true 1',
    'grpc,regular,grpc,llama,chat,false 1',
  ])
  expect(values(metrics, 'weir_router_request_errors_total')).toEqual([
    'grpc,regular,grpc,llama,chat,timeout 1',
  ])
  expect(count(metrics, 'weir_router_ttft_seconds')).toContain('http,regular,llama,chat 1 0.25')
  expect(count(metrics, 'weir_router_generation_duration_seconds')).toEqual(['http,regular,llama,chat 1 1.5'])
  expect(count(metrics, 'weir_router_request_duration_seconds')).toEqual([
    'http,regular,http,llama,chat 1 2',
    'grpc,regular,grpc,llama,chat 1 1',
  ])
})

test('tokens count by direction, and streams by time per output token', () => {
  const metrics = new ThreadMetrics()
  const router = new RouterMetrics(metrics, modelLabelLimit())
  const routed = router.forRequest(routerKinds('grpc').regular, 'llama', 'chat', true)
  routed.tokens.add({ input: 7, output: 3, cached: 0, reasoning: 0 })
  routed.tokens.add({ input: 1, output: 2, cached: 1, reasoning: 1 })
  routed.pace?.observe(0.25)
  router.forRequest(routerKinds('grpc').regular, 'llama', 'chat', false).pace?.observe(9)
  expect(values(metrics, 'weir_router_tokens_total')).toEqual([
    'grpc,regular,llama,chat,input 8',
    'grpc,regular,llama,chat,output 5',
    'grpc,regular,llama,chat,cached 1',
    'grpc,regular,llama,chat,reasoning 1',
  ])
  expect(count(metrics, 'weir_router_tpot_seconds')).toEqual(['grpc,regular,llama,chat 1 0.25'])
})

test('upstream responses count by status, failures by their code', () => {
  const metrics = new ThreadMetrics()
  const router = new RouterMetrics(metrics, modelLabelLimit())
  router.onUpstreamResponse(routerKinds('http').regular, 200, null)
  router.onUpstreamResponse(routerKinds('http').regular, 200, null)
  router.onUpstreamResponse(routerKinds('http').regular, 0, 'connect_failed')
  expect(values(metrics, 'weir_router_upstream_responses_total')).toEqual([
    'http,200, 2',
    'http,0,connect_failed 1',
  ])
})

test('the error type follows from the status', () => {
  const types = [400, 401, 404, 408, 429, 500, 502, 503, 504, 0].map(routerErrorType)
  expect(types).toEqual([
    'validation_error',
    'validation_error',
    'no_workers',
    'timeout',
    'validation_error',
    'backend_error',
    'backend_error',
    'backend_error',
    'timeout',
    'internal_error',
  ])
})

test('models beyond the first thousand share the label other', () => {
  const metrics = new ThreadMetrics()
  const router = new RouterMetrics(metrics, modelLabelLimit())
  for (let index = 0; index < 1_500; index += 1) {
    router.forRequest(routerKinds('http').regular, `model-${index}`, 'chat', false).requests.inc()
  }
  router.forRequest(routerKinds('http').regular, 'other', 'chat', false).requests.inc()
  const counted = values(metrics, 'weir_router_requests_total')
  expect(counted).toHaveLength(1_001)
  expect(counted).toContain('http,regular,http,other,chat,false 501')
})

test('label values that are overlong or hold control characters are other', () => {
  const limit = new LabelLimit(10)
  expect([limit.admit('a\u0000b'), limit.admit('x'.repeat(201)), limit.admit('Qwen/Qwen3 8B')]).toEqual([
    'other',
    'other',
    'Qwen/Qwen3 8B',
  ])
})

interface Sample {
  readonly url: string
  readonly models: readonly { readonly id: string }[]
  readonly inFlight: number
  readonly status: WorkerStatus
  readonly figures: WorkerFigures
}

test('worker gauges follow the table, without removed workers', () => {
  const metrics = new ThreadMetrics()
  const workers = new WorkerMetrics(metrics, modelLabelLimit())
  const sample = (url: string, more: Partial<Sample> = {}): Sample => ({
    url,
    models: [{ id: 'llama' }],
    inFlight: 2,
    status: 'ready',
    figures: workerFigures(),
    ...more,
  })
  let table = [
    sample('http://a'),
    sample('http://b', { inFlight: 5, status: 'draining' }),
    sample('http://c', { models: [] }),
  ]
  workers.watch({
    get workers() {
      return table.map(({ url, models }, slot) => ({
        slot,
        url,
        models,
        workerType: 'regular' as const,
        connectionMode: 'http' as const,
      }))
    },
    inFlight: (slot) => table[slot].inFlight,
    status: (slot) => table[slot].status,
    figures: (slot) => table[slot].figures,
  })
  expect(values(metrics, 'weir_worker_pool_size')).toEqual(['regular,http,llama 2', 'regular,http,unknown 1'])
  expect(values(metrics, 'weir_worker_connections_active')).toEqual(['regular,http 9'])
  expect(values(metrics, 'weir_worker_requests_active')).toEqual(['http://a 2', 'http://b 5', 'http://c 2'])
  expect(values(metrics, 'weir_worker_health')).toEqual(['http://a 1', 'http://c 1'])
  expect(values(metrics, 'weir_worker_state')).toEqual(['http://a 1', 'http://b 4', 'http://c 1'])
  const failures = { answered: 3, silent: 2, unreachable: 1 }
  table = [
    sample('http://a', {
      figures: workerFigures({
        failures,
        durationMs: 1_500,
        firstByteMs: 250,
        failureShare: 0.5,
        isStalled: true,
      }),
    }),
  ]
  expect(values(metrics, 'weir_worker_failures_total')).toEqual([
    'http://a,answered 3',
    'http://a,silent 2',
    'http://a,unreachable 1',
  ])
  expect(values(metrics, 'weir_worker_failure_ratio')).toEqual(['http://a 0.5'])
  expect(values(metrics, 'weir_worker_stalled')).toEqual(['http://a 1'])
  expect(values(metrics, 'weir_worker_duration_seconds')).toEqual(['http://a 1.5'])
  expect(values(metrics, 'weir_worker_ttft_seconds')).toEqual(['http://a 0.25'])
  table = [sample('http://b')]
  expect(values(metrics, 'weir_worker_requests_active')).toEqual(['http://b 2'])
  const health = metrics.snapshot().find(({ name }) => name === 'weir_worker_health') as ValueFamily
  expect(health.series).toEqual([{ labels: ['http://b'], value: 1 }])
})

test('picks and failures of workers are counted', () => {
  const metrics = new ThreadMetrics()
  const workers = new WorkerMetrics(metrics, modelLabelLimit())
  const chosen = { workerType: 'regular', connectionMode: 'http' } as const
  workers.onSelection(chosen, 'llama', 'round_robin')
  workers.onSelection(chosen, 'llama', 'round_robin')
  workers.onSelection(chosen, 'llama', 'hook')
  workers.onSelection({ ...chosen, connectionMode: 'grpc' }, 'llama', 'hook')
  workers.onError('regular', 'http', 'connect')
  expect(values(metrics, 'weir_worker_selection_total')).toEqual([
    'regular,http,llama,round_robin 2',
    'regular,http,llama,hook 1',
    'regular,grpc,llama,hook 1',
  ])
  expect(values(metrics, 'weir_worker_errors_total')).toEqual(['regular,http,connect 1'])
})

test('picks for unknown models of clients share one series', () => {
  const metrics = new ThreadMetrics()
  const workers = new WorkerMetrics(metrics, modelLabelLimit())
  const chosen = { workerType: 'regular', connectionMode: 'http' } as const
  for (let i = 0; i < 1_500; i++) workers.onSelection(chosen, `model-${i}`, 'random')
  const counted = values(metrics, 'weir_worker_selection_total')
  expect(counted).toHaveLength(1_001)
  expect(counted).toContain('regular,http,other,random 500')
})

test('metrics of the process and its event loops', () => {
  const metrics = new ThreadMetrics()
  declareProcessMetrics(metrics)
  const stop = declareEventLoopMetrics(metrics, 2)
  const byName = new Map(metrics.snapshot().map((family) => [family.name, family as ValueFamily]))
  stop()
  expect(byName.get('weir_process_resident_memory_bytes')?.series[0].value).toBeGreaterThan(1e6)
  expect(byName.get('weir_process_cpu_seconds_total')?.series[0].value).toBeGreaterThan(0)
  expect(byName.get('weir_process_uptime_seconds')?.series[0].value).toBeGreaterThan(0)
  const delays = byName.get('weir_event_loop_delay_seconds')?.series
  expect(delays?.map(({ labels }) => labels)).toEqual([
    ['2', '0.5'],
    ['2', '0.99'],
    ['2', '1'],
  ])
})
