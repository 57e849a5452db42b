import { expect, test } from 'vitest'
import type { Metrics } from '#kernel'
import type { LoadedModule } from '../threads/guest-task.ts'
import { ModuleMetrics } from './module-metrics.ts'

function openMetrics() {
  const series = new Map<string, number>()
  const family = (kind: string) => () => {
    const add = (labels: readonly string[], by: number) =>
      series.set([kind, ...labels].join(), (series.get([kind, ...labels].join()) ?? 0) + by)
    return {
      labels: (...labels: string[]) => ({
        inc: (by = 1) => add(labels, by),
        observe: (value: number) => add(labels, value),
      }),
      remove: (...labels: string[]) => series.delete([kind, ...labels].join()),
    }
  }
  const gauges: unknown[] = []
  const metrics = new ModuleMetrics(
    { counter: family('counter'), histogram: family('histogram') } as unknown as Metrics,
    { set: (value) => gauges.push(value) },
  )
  return { series, metrics, gauges }
}

const [a, b] = ['a', 'b'].map((name) => ({ name }) as LoadedModule)

test('the series of a module are limited across threads', () => {
  const { series, metrics } = openMetrics()
  const count = (module: LoadedModule, ...counted: (string | number)[]) =>
    metrics.noted(module, { counted, observed: [], gauged: [] })
  for (let i = 0; i < 200; i++) count(a, i % 2 === 0 ? `n${i}` : `n{${i}}`, 2)
  count(a, 'n0', 1, 'other', 1)
  count(b, 'other', 1)
  expect(series.size).toBe(129)
  expect(['counter,a,n0,', 'counter,a,n,127', 'counter,b,other,'].map((one) => series.get(one))).toEqual([
    3, 2, 1,
  ])
  metrics.forget('a')
  count(a, 'again', 1)
  expect([...series.keys()]).toEqual(['counter,b,other,', 'counter,a,again,'])
})

test('counts and observations have a name and a label, and go with their module', () => {
  const { series, metrics, gauges } = openMetrics()
  metrics.noted(a, {
    counted: ['seen{pii/mail}', 2],
    observed: ['words', 7, 'words', 5, 'words{de}', 1],
    gauged: ['depth{a}', -3],
  })
  expect(gauges).toEqual([{ module: 'a', name: 'depth', label: 'a', value: -3 }])
  expect(Object.fromEntries(series)).toEqual({
    'counter,a,seen,pii/mail': 2,
    'histogram,a,words,': 12,
    'histogram,a,words,de': 1,
  })
  metrics.forget('a')
  expect(series.size).toBe(0)
})
