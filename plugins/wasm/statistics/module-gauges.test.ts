import { afterEach, expect, test, vi } from 'vitest'
import type { Metrics } from '#kernel'
import { GaugeReports, ModuleGauges } from './module-gauges.ts'

afterEach(() => vi.useRealTimers())

function openGauges() {
  const series = new Map<string, { value: number }>()
  const labels = (...names: string[]) => {
    const handle = series.get(names.join()) ?? { value: 0 }
    series.set(names.join(), handle)
    return handle
  }
  const remove = (...names: string[]) => series.delete(names.join())
  const gauges = new ModuleGauges({ gauge: () => ({ labels, remove }) } as unknown as Metrics)
  const shown = () => [...series].map(([name, { value }]) => `${name} ${value}`)
  return { gauges, shown }
}

test('a gauge of two threads has the last value that either reported, not the sum', () => {
  vi.useFakeTimers()
  const { gauges, shown } = openGauges()
  const reports: unknown[] = []
  const open = () =>
    new GaugeReports({
      log: { warn: () => {} },
      command: async (_: unknown, values: Parameters<ModuleGauges['set']>[0]) => {
        reports.push(values)
        gauges.set(values)
      },
    } as never)
  const [one, other] = [open(), open()]
  const depth = (value: number) => ({ module: 'a', name: 'depth', label: '', value })
  for (const value of [1, 2, 3]) one.set(depth(value))
  vi.advanceTimersByTime(100)
  other.set(depth(7))
  other.set({ ...depth(1), label: 'x' })
  vi.advanceTimersByTime(150)
  expect(shown()).toEqual(['a,depth, 3'])
  vi.advanceTimersByTime(100)
  expect(shown()).toEqual(['a,depth, 7', 'a,depth,x 1'])
  vi.advanceTimersByTime(10_000)
  expect(reports).toHaveLength(2)
})

test('the gauges of a module are limited over all threads, and go with it', () => {
  const { gauges, shown } = openGauges()
  for (let number = 0; number < 200; number++)
    gauges.set([{ module: 'a', name: `n${number}`, label: '', value: number }])
  gauges.set([
    { module: 'a', name: 'n5', label: '', value: 50 },
    { module: 'b', name: 'n', label: '', value: 1 },
  ])
  expect(shown()).toHaveLength(129)
  expect(shown()).toContain('a,n5, 50')
  gauges.retain(new Set(['b']))
  expect(shown()).toEqual(['b,n, 1'])
})
