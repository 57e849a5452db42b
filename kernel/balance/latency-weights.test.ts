/** Latency in picks: requests that arrive independently of the responses, at four workers of which one is slow. */
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { pickContext, TestBalance } from '../../test/support/balance-parts.ts'
import { seededRandom } from '../../test/support/policy-fleet.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import { CompiledTable } from './compiled-table.ts'
import { Counters, createCounters } from './counters.ts'
import { LatencyWeights, WEIGHT_PERIOD_MS } from './latency-weights.ts'
import { WorkerStatistics } from './worker-statistics.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const WORKERS = 4
const SLOW = 3
const SERVICE_MS = 100
/** Requests that a worker serves at the same time; others wait. */
const PARALLEL = 8

interface Outcome {
  readonly p99Ms: number
  readonly slowShare: number
}

/** Serves requests for a minute after a warm-up of 20 s. @param rate requests per second */
async function serve(policy: string, rate: number, slowFactor: number, isWeighed: boolean): Promise<Outcome> {
  const random = seededRandom(7)
  const { balance, ...fleet } = openFleet(policy, random)
  // Stops the computation of weights.
  if (!isWeighed) balance.close()
  fleet.register()
  const freeAtMs = Array.from({ length: WORKERS }, () => new Array<number>(PARALLEL).fill(0))
  const ends: { atMs: number; end: () => void }[] = []
  const latencies: number[] = []
  let slow = 0
  const startMs = performance.now()
  let atMs = startMs
  while (atMs < startMs + 80_000) {
    atMs += (-Math.log(1 - random()) / rate) * 1_000
    for (let next = ends[0]; next !== undefined && next.atMs <= atMs; next = ends[0]) {
      ends.shift()
      await advance(next.atMs - performance.now())
      next.end()
    }
    await advance(atMs - performance.now())
    const attempt = balance.pick(pickContext(), 'm')
    const { slot } = attempt.worker
    const places = freeAtMs[slot]
    const place = places.indexOf(Math.min(...places))
    const serviceMs = SERVICE_MS * (0.5 + random()) * (slot === SLOW ? slowFactor : 1)
    places[place] = Math.max(places[place], atMs) + serviceMs
    const endMs = places[place]
    const end = () => {
      attempt.succeeded()
      attempt.release()
    }
    ends.splice(ends.findLastIndex((other) => other.atMs <= endMs) + 1, 0, { atMs: endMs, end })
    if (atMs < startMs + 20_000) continue
    latencies.push(endMs - atMs)
    if (slot === SLOW) slow++
  }
  balance.close()
  latencies.sort((a, b) => a - b)
  return { p99Ms: latencies[Math.floor(latencies.length * 0.99)], slowShare: slow / latencies.length }
}

/** Time passes between turns of the event loop, not within one. */
function advance(ms: number): Promise<unknown> {
  vi.advanceTimersByTime(ms)
  return Promise.resolve()
}

function openFleet(policy: string, random: () => number) {
  const fleet = new TestBalance({ defaultPolicy: policy, random, now: () => Date.now() })
  const workers = Array.from({ length: WORKERS }, (_, slot) => workerEntry({ slot, models: ['m'] }))
  return { balance: fleet.balance, register: () => fleet.register(...workers) }
}

test.each(['least_load', 'power_of_two', 'cache_aware'])(
  '%s: a worker 5 × slower gets fewer requests',
  async (policy) => {
    for (const rate of [40, 120, 200]) {
      const before = await serve(policy, rate, 5, false)
      const after = await serve(policy, rate, 5, true)
      expect(after.p99Ms).toBeLessThanOrEqual(before.p99Ms)
      expect(after.slowShare).toBeLessThan(0.8 * before.slowShare)
      expect(after.slowShare).toBeGreaterThan(0)
    }
  },
)

/** Weights of workers of one model. */
class Weighed {
  readonly counters = new Counters(createCounters(16, 0), 0)
  readonly weights = new LatencyWeights(this.counters)
  readonly #statistics = new WorkerStatistics(this.counters)
  readonly #table: CompiledTable

  constructor(count: number) {
    const workers = Array.from({ length: count }, (_, slot) => workerEntry({ slot, models: ['m'] }))
    this.#table = new CompiledTable({ workers })
  }

  /** One attempt that took this long at each worker; null for none. */
  measure(latenciesMs: readonly (number | null)[]): void {
    latenciesMs.forEach((ms, slot) => {
      if (ms !== null) this.#statistics.succeeded(slot, ms, -1)
    })
    this.weights.update(this.#table)
  }

  get slowness(): number[] {
    return [...this.weights.slownessBySlot.subarray(0, this.#table.workers.length)]
  }
}

test('any latencies: weights are from 0.5 to 2 times, slower workers never weigh less, and the middle is normal', () => {
  const latency = fc.option(fc.double({ min: 0.1, max: 1e6, noNaN: true }))
  fc.assert(
    fc.property(fc.array(latency, { minLength: 1, maxLength: 9 }), (latenciesMs) => {
      const weighed = new Weighed(latenciesMs.length)
      weighed.measure(latenciesMs)
      const rows = latenciesMs.map((ms, slot) => ({ ms, slowness: weighed.slowness[slot] }))
      const known = rows.filter(({ ms }) => ms !== null).sort((a, b) => (a.ms ?? 0) - (b.ms ?? 0))
      for (const { ms, slowness } of rows) {
        expect(slowness).toBeGreaterThanOrEqual(-128)
        expect(slowness).toBeLessThanOrEqual(256)
        if (ms === null || known.length === 1) expect(slowness).toBe(0)
      }
      for (let i = 1; i < known.length; i++)
        expect(known[i].slowness).toBeGreaterThanOrEqual(known[i - 1].slowness)
      if (known.length % 2 === 1) expect(known[known.length >> 1].slowness).toBe(0)
    }),
  )
})

test('latencies that differ by less than half count as equal', () => {
  const weighed = new Weighed(4)
  weighed.measure([100, 120, 140, 90])
  expect(weighed.slowness).toEqual([0, 0, 0, 0])
})

test('a slow worker without requests is tried again after five periods; with one in flight it stays slow', () => {
  const weighed = new Weighed(3)
  const others = [100, 100, null]
  weighed.measure([100, 100, 500])
  weighed.counters.increment(2)
  for (let period = 0; period < 9; period++) weighed.measure(others)
  expect(weighed.slowness).toEqual([0, 0, 256])
  weighed.counters.decrement(2)
  for (let period = 0; period < 4; period++) weighed.measure(others)
  expect(weighed.slowness).toEqual([0, 0, 256])
  weighed.measure(others)
  expect(weighed.slowness).toEqual([0, 0, 0])
  weighed.measure([100, 100, 500])
  expect(weighed.slowness).toEqual([0, 0, 256])
})

test('the next worker of a row starts without the weight of the previous one', async () => {
  const fleet = new TestBalance({ now: () => Date.now() })
  const slots = [0, 1, 2].map(() => fleet.balance.allocateSlot())
  fleet.register(...slots.map((slot) => workerEntry({ slot, models: ['m'] })))
  for (const slot of slots) {
    const attempt = fleet.balance.attempt(fleet.balance.workers[slot])
    await advance(slot === 2 ? 500 : 10)
    attempt.succeeded()
    attempt.release()
  }
  vi.advanceTimersByTime(WEIGHT_PERIOD_MS)
  const next = () => {
    const attempt = fleet.balance.pick(pickContext(), 'm')
    attempt.release()
    return attempt.worker.slot
  }
  const picked = () => new Set(Array.from({ length: 6 }, next))
  expect(picked()).not.toContain(2)
  fleet.balance.freeSlot(2)
  expect(fleet.balance.allocateSlot()).toBe(2)
  fleet.balance.setStatus(2, 'ready')
  expect(picked()).toContain(2)
  fleet.balance.close()
})

test('workers that differ by a few milliseconds weigh the same', () => {
  const weighed = new Weighed(3)
  weighed.measure([1, 2, 9])
  expect(weighed.slowness).toEqual([0, 0, 0])
})
