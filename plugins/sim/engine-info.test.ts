import { describe, expect, test, vi } from 'vitest'
import { defineValidator } from '#kernel'
import { type SimConfig, type SimRuntime, simConfig } from './config.ts'
import { EngineStats } from './engine.ts'
import { loadReport, metricsText, modelInfo, modelList, serverInfo } from './engine-info.ts'
import { ScriptedAnswers } from './scripts.ts'

const config = (fields: Partial<SimConfig> = {}): SimConfig => defineValidator(simConfig).parse({ ...fields })

test('an empty section gets every default', () => {
  expect(config()).toEqual({
    listen: { host: '127.0.0.1', port: 9001 },
    count: 1,
    models: ['sim-1'],
    ttftMs: 20,
    itlMs: 5,
    tokens: 64,
    seed: 1,
    runtime: 'sglang',
    protocol: 'http',
    role: 'regular',
    engine: {
      model: 'paced',
      prefillTokensPerSecond: 8000,
      prefillChunkTokens: 2048,
      decodeBaseMs: 6,
      decodePerRunningMs: 0.35,
      maxRunning: 256,
      maxWaiting: 4096,
      kvTokens: 524_288,
      blockTokens: 16,
    },
    apiKey: null,
    embeddingDimensions: 64,
    maxModelLen: 32_768,
    fixedResponse: false,
    record: true,
    responses: false,
  })
})

describe('what the engine says about itself', () => {
  test.each<[SimRuntime, string | undefined]>([
    ['sglang', 'sglang'],
    ['vllm', 'vllm'],
    ['trtllm', 'trtllm'],
    ['llamacpp', 'llamacpp'],
    ['mlx', undefined],
    ['transformers', 'local'],
  ])('models of %s are owned by %s', (runtime, owner) => {
    const list = modelList(config({ runtime, models: ['a', 'b'] }), 1)
    const owned = list.data as { id: string; owned_by?: string }[]
    expect(owned.map(({ id, owned_by }) => [id, owned_by])).toEqual([
      ['a', owner],
      ['b', owner],
    ])
  })

  test('server and model facts have the members that a gateway reports', () => {
    expect(serverInfo(config(), new EngineStats().load())).toMatchObject({
      backend: 'sglang',
      gpu_count: 0,
      max_running_requests: 256,
    })
    expect(modelInfo(config())).toMatchObject({ model_name: 'sim-1', max_tokens: 32_768, vocab_size: 32_000 })
  })

  test('the load report counts what runs', () => {
    const stats = new EngineStats()
    stats.running = 3
    stats.usedTokens = 524_288 / 2
    const { dp_rank_count, timestamp, loads } = loadReport(stats)
    expect(dp_rank_count).toBe(1)
    expect(Date.parse(timestamp)).not.toBeNaN()
    expect(loads).toEqual([
      {
        dp_rank: 0,
        num_running_reqs: 3,
        num_waiting_reqs: 0,
        num_total_reqs: 3,
        num_used_tokens: 262_144,
        max_total_num_tokens: 524_288,
        max_running_requests: 256,
        token_usage: 0.5,
        gen_throughput: 0,
        cache_hit_rate: 0,
        utilization: 3 / 256,
        num_waiting_uncached_tokens: 0,
      },
    ])
  })

  test('metrics carry the names of the runtime', () => {
    const stats = new EngineStats()
    stats.running = 2
    expect(metricsText(config(), stats)).toContain('sglang:num_running_reqs{model_name="sim-1"} 2\n')
    const vllm = metricsText(config({ runtime: 'vllm' }), stats)
    expect(vllm).toContain('vllm:num_requests_running{model_name="sim-1"} 2\n')
    expect(vllm).toContain('# TYPE vllm:kv_cache_usage_perc gauge\n')
  })
})

test('the rate of tokens is taken over at least a second', () => {
  vi.useFakeTimers()
  const stats = new EngineStats()
  stats.generatedTokens = 500
  expect(stats.tokensPerSec()).toBe(0)
  vi.advanceTimersByTime(2000)
  expect(stats.tokensPerSec()).toBeCloseTo(250)
  vi.useRealTimers()
})

test('scripted answers are used in order, for their path and as often as they count', () => {
  const book = new ScriptedAnswers()
  book.add({ text: 'chat', count: 1, match: { path: '/v1/chat/completions' } })
  book.add({ text: 'any', count: 2, match: {} })
  expect(book.take('/generate')?.text).toBe('any')
  expect(book.take('/v1/chat/completions')?.text).toBe('chat')
  expect(book.take('/v1/chat/completions')?.text).toBe('any')
  expect(book.take('/generate')).toBeNull()
  expect(() => book.add({ count: 1, match: {} })).toThrow('needs one of')
})
