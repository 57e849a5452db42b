import { expect, test } from 'vitest'
import { readGauges, readLoads } from './load-report.ts'

const NOW = '2026-01-02T03:04:05.000Z'

test('§2.12 a report keeps its numbers, and missing ones are zero', () => {
  const report = readLoads(
    {
      timestamp: '2026-01-01T00:00:00Z',
      dp_rank_count: 2,
      loads: [{ dp_rank: 1, num_used_tokens: 7, extra: 1 }],
    },
    NOW,
  )
  expect(report).toEqual({
    timestamp: '2026-01-01T00:00:00Z',
    dp_rank_count: 2,
    loads: [
      {
        dp_rank: 1,
        num_running_reqs: 0,
        num_waiting_reqs: 0,
        num_total_reqs: 0,
        num_used_tokens: 7,
        max_total_num_tokens: 0,
        max_running_requests: 0,
        token_usage: 0,
        gen_throughput: 0,
        cache_hit_rate: 0,
        utilization: 0,
      },
    ],
  })
})

test('§2.12 an answer without ranks is no report', () => {
  for (const answer of [null, 1, 'x', [], {}, { loads: [] }, { loads: {} }])
    expect(readLoads(answer, NOW)).toBe(null)
  expect(readLoads({ loads: [null] }, NOW)).toMatchObject({ timestamp: NOW, dp_rank_count: 1 })
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
  expect(readGauges(page, NOW)?.loads).toMatchObject([
    { num_running_reqs: 5, num_waiting_reqs: 4, num_total_reqs: 9, token_usage: 0.3, num_used_tokens: 0 },
  ])
})

test('gauges of sglang in either spelling; a missing usage gauge is -1, not 0', () => {
  expect(readGauges('sglang:num_running_reqs 1\nsglang:token_usage 0.25\n', NOW)?.loads).toMatchObject([
    { num_running_reqs: 1, token_usage: 0.25 },
  ])
  expect(readGauges('sglang_num_running_reqs 2\n', NOW)?.loads).toMatchObject([
    { num_running_reqs: 2, token_usage: -1 },
  ])
})

test('a page of something else is no report', () => {
  expect(readGauges('process_cpu_seconds_total 1\n', NOW)).toBe(null)
})

test('a page that is not of the metrics format is refused, not half read', () => {
  expect(() => readGauges('vllm:num_requests_running 1\n<html>', NOW)).toThrow(/line 2/)
})
