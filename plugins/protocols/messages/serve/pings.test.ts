/** Silent streams get their pings in time, others none. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Pings, type PingTarget } from './pings.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function target() {
  const at: number[] = []
  const one: PingTarget & { at: number[] } = {
    lastEventMs: performance.now(),
    at,
    ping: () => void at.push(performance.now()),
  }
  return one
}

test('a silence of 40 s has two pings, the first a second late at most', () => {
  const pings = new Pings(15_000)
  const silent = target()
  const busy = target()
  const began = performance.now()
  pings.add(silent)
  pings.add(busy)
  for (let second = 0; second < 40; second++) {
    vi.advanceTimersByTime(1_000)
    busy.lastEventMs = performance.now()
  }
  expect(silent.at).toHaveLength(2)
  expect(silent.at[0] - began).toBeLessThanOrEqual(16_000)
  expect(busy.at).toEqual([])
  pings.close()
})

test('who has left gets none, and without anybody there is no timer', () => {
  const pings = new Pings(1_000)
  const gone = target()
  pings.add(gone)
  pings.remove(gone)
  expect(vi.getTimerCount()).toBe(0)
  vi.advanceTimersByTime(10_000)
  expect(gone.at).toEqual([])
  new Pings(0).add(gone)
  expect(vi.getTimerCount()).toBe(0)
})
