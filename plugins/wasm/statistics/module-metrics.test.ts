import { expect, test } from 'vitest'
import type { Metrics } from '#kernel'
import type { LoadedModule } from '../threads/guest-task.ts'
import { ModuleMetrics } from './module-metrics.ts'

test('the counter names of a module are limited across threads', () => {
  const series = new Map<string, number>()
  const counter = () => ({
    labels: (...labels: string[]) => ({
      inc: (by = 1) => series.set(labels.join(), (series.get(labels.join()) ?? 0) + by),
    }),
    remove: (...labels: string[]) => series.delete(labels.join()),
  })
  const metrics = new ModuleMetrics({ counter, histogram: counter } as unknown as Metrics)
  const [a, b] = ['a', 'b'].map((name) => ({ name }) as LoadedModule)
  for (let i = 0; i < 100; i++) metrics.counted(a, [`n${i}`, 2])
  metrics.counted(a, ['n0', 1, 'other', 1])
  metrics.counted(b, ['other', 1])
  expect(series.size).toBe(33)
  expect([series.get('a,n0'), series.get('a,n31'), series.get('b,other')]).toEqual([3, 2, 1])
  metrics.forget('a')
  metrics.counted(a, ['again', 1])
  expect([...series.keys()]).toEqual(['b,other', 'a,again'])
})
