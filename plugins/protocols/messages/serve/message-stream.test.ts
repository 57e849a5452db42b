/** Pings of silent streams. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Pings, type PingTarget } from './message-stream.ts'

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

test('40 s of silence have two pings, the first at most one second late', () => {
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

test('a removed stream gets no pings, and without streams there is no timer', () => {
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
