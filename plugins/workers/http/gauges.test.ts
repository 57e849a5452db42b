import { expect, test } from 'vitest'
import { readGauges } from './gauges.ts'

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

test('a page of something else is no report', () => {
  expect(readGauges('process_cpu_seconds_total 1\n')).toBe(null)
})

test('a page that is not of the metrics format is refused, not half read', () => {
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
