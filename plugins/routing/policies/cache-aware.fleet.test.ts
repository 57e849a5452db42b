/** cache_aware on a simulated fleet of engines with prefix caches. */
import { expect, test } from 'vitest'
import {
  type Arrival,
  drawArrivals,
  drawWords,
  type SimulatedTimes,
  simulate,
} from '../../../test/support/engine-model.ts'
import { PolicyThread } from '../../../test/support/policy-fleet.ts'

const ENGINES = 8
const LOAD = { ratePerSecond: 80, seconds: 10, seed: 11 }

function run(policy: string, arrivals: readonly Arrival[], settings = {}): SimulatedTimes {
  const instance = new PolicyThread({ cacheAware: settings }).policy(policy)
  const times = simulate(instance, ENGINES, arrivals)
  instance.close?.()
  return times
}

/** 70 % of the prompts begin with one of `count` system prompts of 200 words. */
function sharedPrefixes(count: number): Arrival[] {
  const systems: string[] = []
  return drawArrivals(LOAD, (random) => {
    while (systems.length < count) systems.push(drawWords(random, 200))
    if (random() >= 0.7) return drawWords(random, 40)
    return `${systems[Math.floor(random() * count)]} ${drawWords(random, 20)}`
  })
}

test('conversations: the median time to first token is below 80 % of that of round_robin', () => {
  const conversations: string[] = []
  const arrivals = drawArrivals(LOAD, (random) => {
    if (conversations.length < 40 || random() < 0.1) conversations.push(drawWords(random, 200))
    const turn = conversations.length - 1 - Math.floor(random() * 40)
    conversations[turn] += ` ${drawWords(random, 100)}`
    return conversations[turn]
  })
  const cacheAware = run('cache_aware', arrivals)
  const roundRobin = run('round_robin', arrivals)
  expect(cacheAware.ttftP50Ms).toBeLessThan(0.8 * roundRobin.ttftP50Ms)
  expect(cacheAware.ttftMeanMs).toBeLessThan(0.5 * roundRobin.ttftMeanMs)
  expect(cacheAware.e2eP99Ms).toBeLessThan(roundRobin.e2eP99Ms)
})

test('with a hundred system prompts the mean time to first token decreases by a fifth', () => {
  const arrivals = sharedPrefixes(100)
  const cacheAware = run('cache_aware', arrivals)
  const roundRobin = run('round_robin', arrivals)
  expect(cacheAware.ttftMeanMs).toBeLessThan(0.8 * roundRobin.ttftMeanMs)
  expect(cacheAware.e2eP50Ms).toBeLessThan(roundRobin.e2eP50Ms)
})

test('without shared prefixes it is at most 5 % slower', () => {
  const arrivals = drawArrivals(LOAD, (random) => drawWords(random, 220))
  const cacheAware = run('cache_aware', arrivals)
  const roundRobin = run('round_robin', arrivals)
  expect(cacheAware.ttftP50Ms).toBeLessThan(1.05 * roundRobin.ttftP50Ms)
  expect(cacheAware.e2eP50Ms).toBeLessThan(1.05 * roundRobin.e2eP50Ms)
})

test('a system prompt of most requests does not overload the engine that had it first', () => {
  const arrivals = sharedPrefixes(1)
  const roundRobin = run('round_robin', arrivals)
  expect(run('cache_aware', arrivals).e2eP99Ms).toBeLessThan(1.3 * roundRobin.e2eP99Ms)
  // Without queuedRequestTokens it would.
  expect(run('cache_aware', arrivals, { queuedRequestTokens: 0 }).e2eP99Ms).toBeGreaterThan(
    2 * roundRobin.e2eP99Ms,
  )
})
