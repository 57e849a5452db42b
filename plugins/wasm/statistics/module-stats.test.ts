import { afterEach, expect, test, vi } from 'vitest'
import { ModuleStats, toNanosecondTime } from './module-stats.ts'

afterEach(() => vi.useRealTimers())

const memory = () => new SharedArrayBuffer(ModuleStats.bytes(2, 2))
const open = (failures = 3, coolOffMs = 1_000) => new ModuleStats(memory(), 2, 1, { failures, coolOffMs })

test('totals add up over all modules, and each module has its own count', () => {
  const stats = open()
  stats.begin(0, 5n)
  stats.begin(1, 5n)
  stats.count(0, 1_500, true)
  stats.count(1, 200, false)
  stats.count(0, 100, true)
  expect(stats.totals()).toEqual({ total: 3, successful: 2, failed: 1, timeUs: 1_800, maxTimeUs: 1_500 })
  expect([stats.accessCount(0), stats.accessCount(1)]).toEqual([2, 1])
  expect(stats.lastAccessedNs(0)).toBeGreaterThan(5n)
})

test('counts of threads add up, and a suspension applies to all threads', () => {
  const shared = memory()
  const [one, other] = [0, 1].map(
    (column) => new ModuleStats(shared, 2, column, { failures: 2, coolOffMs: 60_000 }),
  )
  one.begin(1, 5n)
  one.count(1, 100, true, 10)
  other.count(1, 300, true, 40)
  expect(one.totals()).toEqual({ total: 2, successful: 2, failed: 0, timeUs: 400, maxTimeUs: 300 })
  expect(one.accessCount(1)).toBe(2)
  expect([one.count(1, 1, false), other.count(1, 1, false)]).toEqual([false, true])
  expect(one.isSuspended(1)).toBe(true)
  expect(one.ofModule(1)).toMatchObject({ failed: 2, timeUs: 402, fuel: 50, maxFuel: 40 })
  other.begin(1, 6n)
  expect(one.ofModule(1)).toMatchObject({ failed: 0, timeUs: 0, suspendedUntilMs: null })
  expect([one.lastAccessedNs(1), one.totals().total]).toEqual([0n, 4])
})

test('a new module in a row starts at zero, the totals stay', () => {
  const stats = open(1)
  stats.begin(0, 1n)
  stats.count(0, 10, false)
  expect(stats.isSuspended(0)).toBe(true)
  stats.begin(0, 2_000n)
  expect([stats.accessCount(0), stats.lastAccessedNs(0), stats.isSuspended(0)]).toEqual([0, 2_000n, false])
  expect(stats.totals().failed).toBe(1)
})

test('consecutive failures suspend a module for the cool-off; the last failure reports it', () => {
  vi.useFakeTimers({ now: 10_000 })
  const stats = open(3, 1_000)
  const fail = () => stats.count(0, 1, false)
  expect([fail(), fail()]).toEqual([false, false])
  stats.count(0, 1, true)
  expect([fail(), fail(), fail()]).toEqual([false, false, true])
  // Calls in flight change nothing.
  expect([fail(), stats.isSuspended(0), stats.isSuspended(1)]).toEqual([false, true, false])
  vi.setSystemTime(11_000)
  expect(stats.isSuspended(0)).toBe(false)
  // Still consecutive: one more failure is enough, until a call succeeds.
  expect([fail(), stats.isSuspended(0)]).toEqual([true, true])
  vi.setSystemTime(13_000)
  stats.count(0, 1, true)
  expect([fail(), stats.isSuspended(0)]).toEqual([false, false])
})

test('times have nine fractional digits', () => {
  expect(toNanosecondTime(1_767_323_045_000_000_042n)).toBe('2026-01-02T03:04:05.000000042Z')
})
