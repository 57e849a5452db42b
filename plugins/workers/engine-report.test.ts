import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readRankReports, reportsOfRank, toEngineLoad, toRankReports } from './engine-report.ts'
import { readGauges } from './load-report.ts'

const answer = (...loads: unknown[]) => ({ loads })

test('§2.12 counts of ranks add up, KV use is their mean, and tokens are told rank by rank', () => {
  const reports = readRankReports(
    answer(
      {
        dp_rank: 1,
        num_used_tokens: 100,
        token_usage: 0.5,
        gen_throughput: 10,
        num_waiting_uncached_tokens: 7,
      },
      { dp_rank: 0, num_used_tokens: 300, max_total_num_tokens: 3_000, gen_throughput: 20 },
    ),
  )
  expect(toEngineLoad(reports ?? [], 5)).toEqual({
    queuedTokens: 7,
    usedTokens: 400,
    kvUsage: 0.3,
    tokensPerSecond: 30,
    usedTokensByRank: [300, 100],
    atMs: 5,
  })
})

test('what an engine does not tell is -1, not 0', () => {
  expect(toEngineLoad(readRankReports(answer({})) ?? [], 5)).toEqual({
    queuedTokens: -1,
    usedTokens: -1,
    kvUsage: -1,
    tokensPerSecond: 0,
    usedTokensByRank: [],
    atMs: 5,
  })
  const gauges = readGauges('vllm:num_requests_running 3\nvllm:kv_cache_usage_perc 0.25\n', '')
  if (gauges === null) throw new Error('no gauges')
  expect(toEngineLoad(toRankReports(gauges), 5)).toMatchObject({ usedTokens: -1, kvUsage: 0.25 })
})

test('a rank that is a worker gets its own report, or its share where ranks are not told apart', () => {
  const reports =
    readRankReports(answer({ dp_rank: 0, num_used_tokens: 8 }, { dp_rank: 1, num_used_tokens: 2 })) ?? []
  expect(reportsOfRank(reports, 1, 2)).toEqual([reports[1]])
  const whole = readRankReports(answer({ num_used_tokens: 8, token_usage: 0.5, gen_throughput: 40 })) ?? []
  expect(reportsOfRank(whole, 3, 4)).toMatchObject([
    { rank: 3, usedTokens: 2, kvUsage: 0.5, tokensPerSecond: 10, queuedTokens: -1 },
  ])
})

test('any JSON is read without harm: every number is finite and in its range', () => {
  const number = fc.oneof(fc.double(), fc.integer(), fc.string(), fc.constant(null))
  const rank = fc.dictionary(
    fc.constantFrom('dp_rank', 'num_used_tokens', 'token_usage', 'gen_throughput', 'max_total_num_tokens'),
    number,
  )
  fc.assert(
    fc.property(
      fc.oneof(fc.jsonValue(), fc.record({ loads: fc.array(fc.oneof(rank, fc.constant(null))) })),
      (value) => {
        const reports = readRankReports(value)
        if (reports === null) return
        const load = toEngineLoad(reports, 1)
        expect(load.kvUsage === -1 || (load.kvUsage >= 0 && load.kvUsage <= 1)).toBe(true)
        for (const count of [load.usedTokens, load.tokensPerSecond, ...load.usedTokensByRank])
          expect(Number.isNaN(count)).toBe(false)
        expect(load.usedTokensByRank.length).toBeLessThanOrEqual(1_024)
      },
    ),
  )
})
