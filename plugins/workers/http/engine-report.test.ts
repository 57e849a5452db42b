import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readReport } from './engine-report.ts'

const UNTOLD = {
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

test('a report keeps its numbers and its time, and what an engine does not tell is -1, not 0', () => {
  const timestamp = '2026-01-01T00:00:00Z'
  const loads = [{ dp_rank: 1, num_used_tokens: 300, max_total_num_tokens: 3_000, extra: 1 }, null]
  expect(readReport({ timestamp, dp_rank_count: 2, loads })).toEqual({
    timestamp,
    ranks: [
      { ...UNTOLD, rank: 1, usedTokens: 300, maxTokens: 3_000, kvUsage: 0.1 },
      { ...UNTOLD, rank: 1 },
    ],
  })
})

test('an answer without ranks is no report', () => {
  for (const answer of [null, 1, 'x', [], {}, { loads: [] }, { loads: {} }])
    expect(readReport(answer)).toBe(null)
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
        for (const load of readReport(value)?.ranks ?? []) {
          expect(load.kvUsage === -1 || (load.kvUsage >= 0 && load.kvUsage <= 1)).toBe(true)
          expect(load.rank).toBeLessThan(1_024)
          for (const count of Object.values(load)) expect(Number.isFinite(count)).toBe(true)
        }
      },
    ),
  )
})
