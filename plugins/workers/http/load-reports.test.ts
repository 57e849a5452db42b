import fc from 'fast-check'
import { expect, test } from 'vitest'
import { UpstreamFailure, type WorkerResponse } from '#kernel'
import { readLoadReport } from '#shared'
import { LoadSources, readGauges } from './load-reports.ts'

const UNKNOWN = {
  runningRequests: -1,
  waitingRequests: -1,
  maxRequests: -1,
  queuedTokens: -1,
  usedTokens: -1,
  maxTokens: -1,
  kvUsage: -1,
  tokensPerSecond: 0,
  cacheHitRate: -1,
  utilization: -1,
}

test('a report keeps its numbers and its time, and missing values are -1, not 0', () => {
  const timestamp = '2026-01-01T00:00:00Z'
  const loads = [{ dp_rank: 1, num_used_tokens: 300, max_total_num_tokens: 3_000, extra: 1 }, null]
  expect(readLoadReport({ timestamp, dp_rank_count: 2, loads })).toEqual({
    timestamp,
    ranks: [
      { ...UNKNOWN, rank: 1, usedTokens: 300, maxTokens: 3_000, kvUsage: 0.1 },
      { ...UNKNOWN, rank: 1 },
    ],
  })
})

test('a response without ranks is not a report', () => {
  for (const answer of [null, 1, 'x', [], {}, { loads: [] }, { loads: {} }])
    expect(readLoadReport(answer)).toBe(null)
})

test('any JSON is accepted: every number is finite and in its range', () => {
  const number = fc.oneof(fc.double(), fc.integer(), fc.string(), fc.constant(null))
  const rank = fc.dictionary(
    fc.constantFrom('dp_rank', 'num_used_tokens', 'token_usage', 'gen_throughput', 'max_total_num_tokens'),
    number,
  )
  fc.assert(
    fc.property(
      fc.oneof(fc.jsonValue(), fc.record({ loads: fc.array(fc.oneof(rank, fc.constant(null))) })),
      (value) => {
        for (const load of readLoadReport(value)?.ranks ?? []) {
          expect(load.kvUsage === -1 || (load.kvUsage >= 0 && load.kvUsage <= 1)).toBe(true)
          expect(load.rank).toBeLessThan(1_024)
          for (const count of Object.values(load)) expect(Number.isFinite(count)).toBe(true)
        }
      },
    ),
  )
})

test('gauges of vllm: counts add up, ratios are averaged', () => {
  const page = [
    '# HELP vllm:num_requests_running x',
    'vllm:num_requests_running{engine="0",model_name="a b"} 2.0',
    'vllm:num_requests_running{engine="1"} 3',
    'vllm:num_requests_waiting{engine="0"} 4',
    'vllm:kv_cache_usage_perc{engine="0"} 0.5 1700000000',
    'vllm:kv_cache_usage_perc{engine="1"} 0.1',
  ].join('\n')
  expect(readGauges(page)).toMatchObject({
    runningRequests: 5,
    waitingRequests: 4,
    kvUsage: 0.3,
    usedTokens: -1,
  })
})

test('gauges of sglang in either spelling; a missing usage gauge is -1, not 0', () => {
  expect(readGauges('sglang:num_running_reqs 1\nsglang:token_usage 0.25\n')).toMatchObject({
    runningRequests: 1,
    kvUsage: 0.25,
  })
  expect(readGauges('sglang_num_running_reqs 2\n')).toMatchObject({
    runningRequests: 2,
    kvUsage: -1,
  })
})

test('a page without known gauges is not a report', () => {
  expect(readGauges('process_cpu_seconds_total 1\n')).toBe(null)
})

test('a page that is not in the metrics format is rejected', () => {
  expect(() => readGauges('vllm:num_requests_running 1\n<html>')).toThrow(/line 2/)
})

test('gauges of llama.cpp', () => {
  const page =
    'llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\nllamacpp:predicted_tokens_seconds 50\n'
  expect(readGauges(page)).toMatchObject({
    runningRequests: 2,
    waitingRequests: 1,
    tokensPerSecond: 50,
    kvUsage: -1,
  })
})

const target = { url: 'http://w:1', apiKey: null }

function reply(status: number, body: unknown = {}): WorkerResponse {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const json = () => JSON.parse(bytes.toString())
  return { status, headers: [], body: bytes, header: () => undefined, json }
}

function open(answer: (path: string) => WorkerResponse) {
  const queried: string[] = []
  const sources = new LoadSources(async (_worker, { path }) => {
    queried.push(path.split('?')[0])
    return answer(path)
  })
  return { sources, queried }
}

test('a missing route is queried at growing intervals', async () => {
  const { sources, queried } = open(() => reply(404))
  for (let second = 0; second < 3_600; second += 10) {
    expect(await sources.read(target, 'sglang', second * 1_000)).toBeNull()
  }
  const count = (path: string) => queried.filter((one) => one === path).length
  expect(count('/v1/loads')).toBeLessThan(12)
  expect(count('/v1/loads')).toBeGreaterThan(5)
  expect(count('/metrics')).toBe(count('/v1/loads'))
})

test('slots of llama.cpp are counted, and the metrics that it has not are asked for once', async () => {
  const slots = [
    { id: 0, is_processing: true },
    { id: 1, is_processing: false },
  ]
  const { sources, queried } = open((path) => (path === '/slots' ? reply(200, slots) : reply(501)))
  for (const nowMs of [0, 1, 10_000_000])
    expect((await sources.read(target, 'llamacpp', nowMs))?.ranks).toEqual([
      { ...UNKNOWN, rank: 0, runningRequests: 1, maxRequests: 2 },
    ])
  expect(queried).toEqual(['/metrics', '/slots', '/slots', '/slots'])
})

test.each([
  ['vllm', ['/metrics']],
  ['llamacpp', ['/metrics']],
  ['sglang', ['/v1/loads', '/metrics']],
  ['external', []],
])('%s is queried at %j', async (runtime, paths) => {
  const { sources, queried } = open((path) =>
    path === '/metrics'
      ? reply(200, 'vllm:num_requests_running 3\nvllm:kv_cache_usage_perc 0.25\n')
      : reply(404),
  )
  const report = await sources.read(target, runtime, 0)
  expect(queried).toEqual(paths)
  expect(report?.ranks[0]?.kvUsage).toBe(paths.length === 0 ? undefined : 0.25)
})

test.each(['__proto__', 'constructor', 'toString'])(
  'an engine called %s is queried as an unspecified one',
  async (runtime) => {
    const { sources, queried } = open(() => reply(200))
    expect(await sources.read(target, runtime, 0)).toBeNull()
    expect(queried).toEqual(['/v1/loads'])
  },
)

test('an unreachable engine is not queried at other routes, and no absence is noted', async () => {
  const { sources, queried } = open(() => {
    throw new UpstreamFailure('connect', 'refused', false)
  })
  expect(await sources.read(target, 'sglang', 0)).toBeNull()
  expect(await sources.read(target, 'sglang', 1)).toBeNull()
  expect(queried).toEqual(['/v1/loads', '/v1/loads'])
})
