import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HistogramFamily, ValueFamily, ValueSeries } from '../contracts/metric.ts'
import { DURATION_BUCKETS, ThreadMetrics } from './metrics.ts'
import { mergeSnapshots, withoutGauges } from './metrics-snapshot.ts'

test('durations have the 29 buckets', () => {
  expect(DURATION_BUCKETS).toHaveLength(29)
  expect([DURATION_BUCKETS[0], DURATION_BUCKETS[28]]).toEqual([0.001, 7200])
})

test('a metric without labels is exported as zero from the start', () => {
  const metrics = new ThreadMetrics()
  metrics.counter({ name: 'a_total', help: 'A.' })
  expect(metrics.snapshot()).toEqual([
    { name: 'a_total', help: 'A.', type: 'counter', labelNames: [], series: [{ labels: [], value: 0 }] },
  ])
})

test('equal labels give the same child, and a removed child is no longer exported', () => {
  const metrics = new ThreadMetrics()
  const family = metrics.gauge({ name: 'g', help: 'G.', labels: ['a', 'b'] })
  family.labels('x', 'y').value = 3
  expect(family.labels('x', 'y').value).toBe(3)
  family.labels('x', 'z')
  family.remove('x', 'y')
  expect((metrics.snapshot()[0] as ValueFamily).series).toEqual([{ labels: ['x', 'z'], value: 0 }])
  expect(() => family.labels('x')).toThrow('metric g has 2 labels, got 1 values')
})

test('declaring a metric twice gives the same family, or an error if it differs', () => {
  const metrics = new ThreadMetrics()
  const first = metrics.histogram({ name: 'h', help: 'H.', labels: ['a'], buckets: [1, 2] })
  expect(metrics.histogram({ name: 'h', help: 'other words', labels: ['a'], buckets: [1, 2] })).toBe(first)
  expect(() => metrics.histogram({ name: 'h', help: '', labels: ['b'], buckets: [1, 2] })).toThrow(
    'declared twice',
  )
  expect(() => metrics.histogram({ name: 'h', help: '', labels: ['a'], buckets: [1, 3] })).toThrow(
    'declared twice',
  )
  expect(() => metrics.counter({ name: 'h', help: '', labels: ['a'] })).toThrow('declared twice')
})

test('names and buckets that the text format cannot represent are rejected when declared', () => {
  const metrics = new ThreadMetrics()
  expect(() => metrics.counter({ name: 'not-a-name', help: '' })).toThrow('is not a metric name')
  expect(() => metrics.counter({ name: 'a', help: '', labels: ['b c'] })).toThrow('is not a label name')
  expect(() => metrics.histogram({ name: 'b', help: '', labels: ['le'] })).toThrow("a label 'le'")
  expect(() => metrics.histogram({ name: 'c', help: '', buckets: [2, 1] })).toThrow('ascending')
  expect(() => metrics.histogram({ name: 'd', help: '', buckets: [1, Infinity] })).toThrow('finite')
})

test('an observation is counted in the first bucket whose bound is not below it', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 10_000, noNaN: true })), (values) => {
      const metrics = new ThreadMetrics()
      const histogram = metrics.histogram({ name: 'h', help: 'H.' }).labels()
      for (const value of [...values, ...DURATION_BUCKETS]) histogram.observe(value)
      const [series] = (metrics.snapshot()[0] as HistogramFamily).series
      DURATION_BUCKETS.forEach((bound, index) => {
        const below = index === 0 ? Number.NEGATIVE_INFINITY : DURATION_BUCKETS[index - 1]
        const inside = values.filter((value) => value > below && value <= bound)
        expect(series.buckets[index]).toBe(inside.length + 1)
      })
      expect(series.buckets[29]).toBe(values.filter((value) => value > 7200).length)
      expect(series.count).toBe(values.length + 29)
    }),
  )
})

test('gauges are refreshed before each snapshot, and a refresher that throws does not affect others', () => {
  const problems: unknown[] = []
  const metrics = new ThreadMetrics((error) => problems.push(error))
  const gauge = metrics.gauge({ name: 'g', help: 'G.' }).labels()
  metrics.onCollect(() => {
    throw new Error('broken')
  })
  metrics.onCollect(() => {
    gauge.value += 5
  })
  metrics.snapshot()
  expect((metrics.snapshot()[0] as ValueFamily).series[0].value).toBe(10)
  expect(problems).toHaveLength(2)
})

test('snapshots of several threads are summed child by child, without being modified', () => {
  const threads = [1, 2, 3].map((thread) => {
    const metrics = new ThreadMetrics()
    metrics
      .counter({ name: 'c_total', help: 'C.', labels: ['who'] })
      .labels('all')
      .inc(thread)
    metrics
      .counter({ name: 'c_total', help: 'C.', labels: ['who'] })
      .labels(`only ${thread}`)
      .inc()
    metrics.gauge({ name: 'g', help: 'G.' }).labels().value = thread
    metrics
      .histogram({ name: 'h', help: 'H.', buckets: [1, 2] })
      .labels()
      .observe(thread)
    return structuredClone(metrics.snapshot())
  })
  const before = structuredClone(threads)
  const [counter, gauge, histogram] = mergeSnapshots(threads) as [ValueFamily, ValueFamily, HistogramFamily]
  expect(threads).toEqual(before)
  expect(counter.series).toContainEqual({ labels: ['all'], value: 6 })
  expect(counter.series).toHaveLength(4)
  expect(gauge.series).toEqual([{ labels: [], value: 6 }])
  expect(histogram.series).toEqual([{ labels: [], buckets: Float64Array.of(1, 1, 1), sum: 6, count: 3 }])
  expect(withoutGauges(threads[0]).map(({ name }) => name)).toEqual(['c_total', 'h'])
})

test('a family of another type is excluded from the sum', () => {
  const metrics = new ThreadMetrics()
  metrics.counter({ name: 'x', help: '' }).labels().inc()
  const odd = new ThreadMetrics()
  odd.gauge({ name: 'x', help: '' }).labels().value = 100
  const [merged] = mergeSnapshots([metrics.snapshot(), odd.snapshot()])
  expect((merged as ValueFamily).series).toEqual([{ labels: [], value: 1 }])
})

test('a read of some families runs only the refreshers that name one of them', () => {
  const metrics = new ThreadMetrics()
  const [cheap, dear] = ['cheap', 'dear'].map((name) => metrics.gauge({ name, help: '' }).labels())
  metrics.counter({ name: 'c_total', help: '' }).labels().value = 2
  metrics.onCollect(() => cheap.value++, ['cheap'])
  metrics.onCollect(() => dear.value++)
  const read = (names?: string[]) =>
    metrics.snapshot(names).map(({ name, series }) => [name, (series[0] as ValueSeries).value])
  expect(read(['c_total', 'cheap', 'unknown'])).toEqual([
    ['c_total', 2],
    ['cheap', 1],
  ])
  expect(read(['c_total', 'dear'])).toEqual([
    ['c_total', 2],
    ['dear', 0],
  ])
  expect(read()).toEqual([
    ['cheap', 2],
    ['dear', 1],
    ['c_total', 2],
  ])
})
