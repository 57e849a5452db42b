import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { StalledStreams } from './stalled-streams.ts'

class Reports {
  stallMs = 5_000
  readonly seen: string[] = []
  progressed = (slot: number) => void this.seen.push(`progress ${slot}`)
  stalled = (slot: number) => void this.seen.push(`stall ${slot}`)
}

let reports: Reports
let streams: StalledStreams

beforeEach(() => {
  vi.useFakeTimers()
  reports = new Reports()
  streams = new StalledStreams(reports)
})
afterEach(() => {
  streams.close()
  vi.useRealTimers()
})

function open(slot: number, isPaused = false) {
  const stream = {
    slot,
    isPaused,
    attemptedAtMs: performance.now(),
    byteAtMs: -1,
    place: -1,
    isSilent: () => {},
  }
  streams.add(stream)
  return stream
}

test('a stream without a byte for stallMs is reported each second until it ends', () => {
  const stream = open(1)
  vi.advanceTimersByTime(4_000)
  expect(reports.seen).toEqual([])
  vi.advanceTimersByTime(2_000)
  expect(reports.seen).toEqual(['stall 1', 'stall 1'])
  streams.remove(stream)
  vi.advanceTimersByTime(5_000)
  expect(reports.seen).toHaveLength(2)
  expect(vi.getTimerCount()).toBe(0)
})

test('streams that end in any order leave the others watched', () => {
  const [first, second, , fourth] = [1, 2, 3, 4].map((slot) => open(slot))
  for (const stream of [second, fourth, first, second]) streams.remove(stream)
  vi.advanceTimersByTime(5_500)
  expect(reports.seen).toEqual(['stall 3'])
})

test('progress of another stream of the worker prevents it, new streams do not', () => {
  open(1)
  const busy = open(1)
  vi.advanceTimersByTime(5_500)
  reports.seen.length = 0
  busy.byteAtMs = streams.nowMs
  vi.advanceTimersByTime(1_000)
  expect(reports.seen).toEqual(['progress 1'])
  open(1)
  vi.advanceTimersByTime(1_000)
  expect(reports.seen).toEqual(['progress 1', 'stall 1'])
})

test('a stream whose client does not read is not stalled, and 0 disables the report', () => {
  open(1, true)
  vi.advanceTimersByTime(10_000)
  expect(reports.seen).toEqual([])
  open(2)
  reports.stallMs = 0
  vi.advanceTimersByTime(10_000)
  expect(reports.seen).toEqual([])
})
