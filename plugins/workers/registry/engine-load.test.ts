import { expect, test } from 'vitest'
import type { RankLoad } from '#kernel'
import { isOverloaded, reportsOfRank, toEngineLoad } from './engine-load.ts'

const UNTOLD: RankLoad = {
  rank: 0,
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

test('counts of ranks add up, and KV use is their mean', () => {
  const reports = [
    { ...UNTOLD, rank: 1, usedTokens: 100, kvUsage: 0.5, tokensPerSecond: 10, queuedTokens: 7 },
    { ...UNTOLD, rank: 0, usedTokens: 300, kvUsage: 0.1, tokensPerSecond: 20 },
  ]
  expect(toEngineLoad(reports, 5)).toEqual({
    queuedTokens: 7,
    usedTokens: 400,
    kvUsage: 0.3,
    tokensPerSecond: 30,
    atMs: 5,
  })
})

test('missing values are -1, not 0', () => {
  expect(toEngineLoad([UNTOLD], 5)).toEqual({
    queuedTokens: -1,
    usedTokens: -1,
    kvUsage: -1,
    tokensPerSecond: 0,
    atMs: 5,
  })
})

test('a rank that is a worker gets its own report, or its share if the report does not separate ranks', () => {
  const reports = [
    { ...UNTOLD, rank: 0, usedTokens: 8 },
    { ...UNTOLD, rank: 1, usedTokens: 2 },
  ]
  expect(reportsOfRank(reports, 1, 2)).toEqual([reports[1]])
  const whole = [{ ...UNTOLD, usedTokens: 8, kvUsage: 0.5, tokensPerSecond: 40 }]
  expect(reportsOfRank(whole, 3, 4)).toMatchObject([
    { rank: 3, usedTokens: 2, kvUsage: 0.5, tokensPerSecond: 10, queuedTokens: -1 },
  ])
})

test('an engine is overloaded from 8 waiting requests or 0.8 of its KV memory on, and never by missing values', () => {
  const limits = { waitingRequests: 8, kvUsage: 0.8, shed: false }
  const judge = (...ranks: Partial<RankLoad>[]) =>
    isOverloaded(
      ranks.map((rank) => ({ ...UNTOLD, ...rank })),
      limits,
    )
  expect(judge({ waitingRequests: 7, kvUsage: 0.79 })).toBe(false)
  expect(judge({ waitingRequests: 8 })).toBe(true)
  expect(judge({ kvUsage: 0.8 })).toBe(true)
  expect(judge({ waitingRequests: 5 }, { waitingRequests: 3 })).toBe(true)
  expect(judge({ kvUsage: 1 }, { kvUsage: 0.5 })).toBe(false)
  expect(judge({})).toBe(false)
})
